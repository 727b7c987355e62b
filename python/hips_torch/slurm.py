"""torchrun's variables from those of Slurm's srun."""

import re

# Slurm numbers the special steps (batch, extern, interactive) from here.
_FIRST_SPECIAL_STEP = 0xFFFFFFF0


def first_host(nodes):
    """The first host name of a Slurm list: "node003" of "node[003-005,9],other"."""
    return "".join(re.match(r"([^\[,]*)(?:\[([^-,\]]*))?", nodes).groups(default=""))


def variables(environment):
    """RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT of a task of srun; empty elsewhere."""
    step = environment.get("SLURM_STEP_ID", "")
    names = {"RANK": "SLURM_PROCID", "LOCAL_RANK": "SLURM_LOCALID", "WORLD_SIZE": "SLURM_STEP_NUM_TASKS"}
    nodes = environment.get("SLURM_STEP_NODELIST", "")
    if not step.isdecimal() or int(step) >= _FIRST_SPECIAL_STEP or not nodes or any(name not in environment for name in names.values()):
        return {}
    made = {name: environment[source] for name, source in names.items()}
    tasks = re.split(r"[(,]", environment.get("SLURM_STEP_TASKS_PER_NODE", ""))[0]
    if tasks.isdecimal():
        made["LOCAL_WORLD_SIZE"] = tasks
    job = environment.get("SLURM_JOB_ID", "0")
    made["MASTER_ADDR"] = first_host(nodes)
    # The same on all tasks, and another one for the next step; HiPS itself listens on the port above it.
    made["MASTER_PORT"] = str(30000 + ((int(job) if job.isdecimal() else 0) * 31 + int(step)) * 2 % 2000)
    return made


def set_variables(environment):
    """Sets what is missing, unless a launcher has set the rank."""
    if "RANK" not in environment and "WORLD_SIZE" not in environment:
        for name, value in variables(environment).items():
            environment.setdefault(name, value)
