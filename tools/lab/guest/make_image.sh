#!/bin/sh
# Makes a guest's kernel and initial file system: make_image.sh FOLDER INIT, with INIT the text of the first program.
# FOLDER then holds vmlinuz, initrd and version; the downloaded package stays in FOLDER/.., so that a new image needs no
# network. Prints one line on stderr and exits 1 where something is missing.
set -eu
umask 022
folder=$1 init=$2
PATH=$PATH:/usr/sbin:/sbin

# What the guest needs, in the words of modprobe. rdma_rxe fails to add a device without a crc32 module.
modules='virtio_pci virtio_console virtio_rng virtio_net 9p 9pnet_virtio overlay crc32_generic crc32_pclmul
  ib_uverbs rdma_ucm rdma_rxe dummy sch_tbf sch_netem'

fail() {
  echo "$1" >&2
  exit 1
}
# have PROGRAM PACKAGE
have() { command -v "$1" >/dev/null || fail "$1 is missing: apt-get install $2"; }
have busybox busybox-static
have depmod kmod
busybox --list | grep -qx cpio || fail "this busybox has no cpio: apt-get install busybox-static"

cd "$folder"
set -- ../linux-image-*.deb
if [ ! -e "$1" ]; then
  have apt-get apt
  have dpkg dpkg
  package_name() { apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p'; }
  # The lists of a fresh machine are empty, those of an old one name packages that are gone.
  package=$(package_name)
  if [ -z "$package" ] || ! (cd .. && apt-get -q download "$package" >download.log 2>&1); then
    if [ "$(id -u)" = 0 ]; then apt-get -q update >../download.log 2>&1 || true; fi
    package=$(package_name)
    [ -n "$package" ] || fail "no package provides the guests' kernel (linux-image-amd64); as root: apt-get update"
    (cd .. && apt-get -q download "$package" >download.log 2>&1) ||
      fail "cannot download $package, the guests' kernel: $(tail -n 1 ../download.log); as root: apt-get update"
  fi
  rm -f ../download.log
  set -- ../linux-image-*.deb
fi
dpkg -x "$1" package || fail "$1 is damaged; remove it and try again"

version=$(ls package/lib/modules)
depmod -b package "$version"
mkdir -p root/bin root/modules root/proc root/sys root/dev root/host root/layer root/new
for module in $modules; do
  modprobe -d package -S "$version" --show-depends "$module" >>insmods 2>/dev/null ||
    fail "the kernel $version has no module $module"
done
sed -n 's/^insmod \([^ ]*\).*/\1/p' insmods | awk '!seen[$0]++' >files
while read -r file; do
  cp "$file" root/modules/
  echo "${file##*/}" >>root/modules/order
done <files
cp "$(command -v busybox)" root/bin/busybox
printf '%s' "$init" >root/init
chmod 755 root/init
(cd root && find . | busybox cpio -o -H newc 2>/dev/null) >initrd
cp "package/boot/vmlinuz-$version" vmlinuz
echo "$version" >version
rm -rf package root insmods files
