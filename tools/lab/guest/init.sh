#!/bin/busybox sh
# The first program of a guest: loads the modules, puts a layer of memory over the host's files, and hands over to the
# agent, which the kernel's command line names.
bb=/bin/busybox
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mount -t devtmpfs devtmpfs /dev

# die WHY: the lab finds this line on the console.
die() {
  echo "hips lab guest: $1"
  $bb poweroff -f
}

agent=
for word in $($bb cat /proc/cmdline); do
  case $word in
    hips.probe) die "probe: it boots" ;;
    hips.agent=*) agent=$($bb printf '%b' "${word#hips.agent=}") ;;
  esac
done

while read -r module; do
  arguments=
  if [ "$module" = dummy.ko ]; then arguments=numdummies=0; fi
  $bb insmod "/modules/$module" $arguments || echo "hips lab guest: $module cannot be loaded"
done </modules/order

$bb mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=1048576,cache=loose host /host ||
  die "the host's files cannot be mounted"
$bb mount -t tmpfs -o mode=755 tmpfs /layer
$bb mkdir /layer/upper /layer/work
$bb mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work overlay /new ||
  die "the layer over the host's files cannot be mounted"
$bb mount -t proc proc /new/proc
$bb mount -t sysfs sysfs /new/sys
$bb mount -t devtmpfs devtmpfs /new/dev
$bb mkdir -p /new/dev/pts /new/dev/shm
$bb mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /new/dev/pts
$bb mount -t tmpfs -o mode=1777 tmpfs /new/dev/shm
$bb mount -t tmpfs -o mode=755 tmpfs /new/run
$bb umount /proc /sys /dev
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=linux
exec $bb switch_root /new "$agent" lab agent </new/dev/null >/new/dev/console 2>&1
