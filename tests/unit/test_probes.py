"""The machine probe: parsers on recorded texts, and the real machine once."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.probes.cgroup import memory_limit_bytes, parse_cpu_max, parse_membership, quota_cores, usable_cores
from assay.probes.cpu import parse_cpuinfo, parse_meminfo
from assay.probes.machine import MachineProbe, create
from assay.probes.servers import foreign_servers, program_of
from assay.probes.usage import Usage, shares
from assay.units import GIB_BYTES

XEON = "\n\n".join(
    f"""processor\t: {number}
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Platinum 8480+
cpu MHz\t\t: {2000 + 100 * number}.000
physical id\t: {number // 4}
core id\t\t: {number % 2}
flags\t\t: fpu sse4_2 fma avx f16c hypervisor avx2 avx512f avx512_vnni amx_tile amx_int8"""
    for number in range(8)
)
GRACE = """processor\t: 0
BogoMIPS\t: 2000.00
Features\t: fp asimd asimddp sve i8mm bf16 sve2
CPU implementer\t: 0x41
CPU part\t: 0xd4f

processor\t: 1
Features\t: fp asimd asimddp sve i8mm bf16 sve2
CPU implementer\t: 0x41
CPU part\t: 0xd4f
"""
MEMINFO = """\
MemTotal:       16000000 kB
MemAvailable:    8000000 kB
SwapTotal:       2000000 kB
SwapFree:         500000 kB
HugePages_Total: 3
"""


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_an_x86_cpuinfo_is_read():
    cpu = parse_cpuinfo(XEON)
    assert (cpu.model, cpu.logical_cores, cpu.physical_cores) == ("Intel(R) Xeon(R) Platinum 8480+", 8, 4)
    assert cpu.isa == ["sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512_vnni", "amx_tile", "amx_int8"]
    assert cpu.hypervisor is True
    assert cpu.frequency_hz == pytest.approx(2.35e9)


def test_an_arm_cpuinfo_is_read_and_what_it_does_not_say_is_none():
    cpu = parse_cpuinfo(GRACE)
    assert (cpu.model, cpu.logical_cores) == ("ARM implementer 0x41 part 0xd4f", 2)
    assert cpu.isa == ["neon", "dotprod", "i8mm", "bf16", "sve", "sve2"]
    assert (cpu.physical_cores, cpu.frequency_hz, cpu.hypervisor) == (None, None, False)


def test_an_empty_cpuinfo_says_nothing():
    cpu = parse_cpuinfo("")
    assert (cpu.model, cpu.logical_cores, cpu.physical_cores, cpu.isa) == (None, 0, None, [])


def test_meminfo_is_read_in_bytes_and_counts_stay_counts():
    memory = parse_meminfo(MEMINFO)
    assert memory["MemTotal"] == 16_000_000 * 1024
    assert memory["HugePages_Total"] == 3


@pytest.mark.parametrize(("text", "cores"), [("max 100000", None), ("150000 100000", 1.5), ("50000 100000\n", 0.5)])
def test_a_version_2_quota_is_read(text, cores):
    assert parse_cpu_max(text) == cores


def test_a_membership_names_the_group_of_each_controller():
    text = "4:memory:/a\n1:cpu,cpuacct:/docker/abc:x\n0::/user.slice\n"
    assert parse_membership(text) == {
        "memory": "/a",
        "cpu": "/docker/abc:x",
        "cpuacct": "/docker/abc:x",
        "": "/user.slice",
    }


def test_the_tightest_version_2_limit_around_the_process_counts(tmp_path):
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/pod/box\n",
            "sys/fs/cgroup/pod/cpu.max": "200000 100000",
            "sys/fs/cgroup/pod/box/cpu.max": "max 100000",
            "sys/fs/cgroup/pod/memory.max": "max",
            "sys/fs/cgroup/pod/box/memory.max": str(2 * GIB_BYTES),
            "sys/fs/cgroup/other/cpu.max": "1000 100000",
        },
    )
    assert quota_cores(root) == 2.0
    assert memory_limit_bytes(root) == 2 * GIB_BYTES


def test_a_version_1_limit_is_found_at_the_mount_point_when_the_path_is_the_hosts(tmp_path):
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "5:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "350000",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        },
    )
    assert quota_cores(root) == 3.5
    assert memory_limit_bytes(root) is None


def test_no_limits_are_none(tmp_path):
    unlimited = {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}
    assert quota_cores(tmp_path) is None
    assert quota_cores(tree(tmp_path, {"proc/self/cgroup": "3:cpu:/\n", **unlimited})) is None
    assert memory_limit_bytes(tmp_path) is None


@pytest.mark.parametrize(
    ("logical", "affinity", "quota", "usable"),
    [(8, 8, None, 8), (8, 4, None, 4), (8, 8, 3.5, 3), (8, 8, 0.5, 1), (2, 2, 9, 2)],
)
def test_usable_cores_are_what_affinity_and_quota_leave(logical, affinity, quota, usable):
    assert usable_cores(logical, affinity, quota) == usable


@pytest.mark.parametrize(
    ("argv", "program"),
    [
        (["/opt/llama.cpp/llama-server", "-m", "x.gguf"], "llama-server"),
        (["/usr/bin/python3", "/usr/local/bin/vllm", "serve", "x"], "vllm"),
        (["python", "-m", "sglang.launch_server", "--tp", "8"], "sglang.launch_server"),
        (["python3.11", "-P", "-m", "assay.engines.embedded"], "assay.engines.embedded"),
        (["less", "llama-server"], None),
        (["python", "-m", "pip", "install", "vllm"], None),
        (["vim", "/srv/vllm"], None),
        ([], None),
    ],
)
def test_an_inference_server_is_known_by_what_it_runs_not_by_what_it_mentions(argv, program):
    assert program_of(argv) == program


def test_our_own_servers_are_not_foreign():
    script = "import sys; print('up', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script, "-m", "vllm.entrypoints.openai.api_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        child.stdout.readline()
        assert program_of(command) is not None
        assert child.pid not in [pid for pid, _ in foreign_servers()]
        child.stdin.close()


BEFORE = Usage(
    at_s=10.0, at_epoch_s=1000.0, busy_s=500.0, steal_s=1.0, total_s=900.0, ours_s=20.0, server_s={(7, 900.0): 30.0}
)
AFTER = replace(BEFORE, at_s=20.0, at_epoch_s=1010.0, busy_s=515.0, steal_s=2.0, total_s=920.0, ours_s=23.0)


def test_foreign_cpu_is_what_neither_we_nor_the_server_used():
    now = replace(AFTER, server_s={(7, 900.0): 34.0, (8, 1005.0): 2.0})
    assert shares(BEFORE, now).foreign_cpu_cores == pytest.approx((15 - 3 - 4 - 2) / 10)
    assert shares(BEFORE, now).steal_share == pytest.approx(1 / 20)


def test_a_server_seen_for_the_first_time_counts_from_then_on_unless_it_is_new():
    old, new = replace(AFTER, server_s={(9, 400.0): 300.0}), replace(AFTER, server_s={(9, 1001.0): 5.0})
    assert shares(BEFORE, old).foreign_cpu_cores == pytest.approx((15 - 3) / 10)
    assert shares(BEFORE, new).foreign_cpu_cores == pytest.approx((15 - 3 - 5) / 10)


def test_the_first_moment_has_no_shares_and_no_steal_is_unknown():
    assert shares(None, AFTER).foreign_cpu_cores is None
    assert shares(replace(BEFORE, steal_s=None), replace(AFTER, steal_s=None)).steal_share is None


def test_rounding_of_the_counters_never_shows_as_negative():
    assert shares(BEFORE, replace(AFTER, ours_s=40.0)).foreign_cpu_cores == 0.0


def test_a_machine_is_described_from_its_files(tmp_path):
    cpufreq = {f"sys/devices/system/cpu/cpu{n}/cpufreq/scaling_cur_freq": f"{2_000_000 + n}" for n in range(2)}
    nodes = {f"sys/devices/system/node/node{n}/cpulist": f"{n}" for n in range(2)}
    root = tree(tmp_path, {"proc/cpuinfo": XEON, "proc/meminfo": MEMINFO, **cpufreq, **nodes})
    probe = MachineProbe(root, folder=tmp_path)
    machine = probe.machine()
    assert (machine.logical_cores, machine.physical_cores, machine.numa_nodes) == (8, 4, 2)
    assert machine.memory_bytes == 16_000_000 * 1024
    snapshot = probe.snapshot()
    assert snapshot["available_memory_bytes"] == 8_000_000 * 1024
    assert snapshot["cpu_frequency_hz"] == pytest.approx(2.0000005e9)
    assert "Swap is in use" in [finding.title for finding in probe.findings()]


def test_a_machine_without_proc_and_sys_is_still_described(tmp_path):
    probe = MachineProbe(tmp_path, folder=tmp_path / "absent")
    machine = probe.machine()
    assert machine.cpu_model
    assert machine.logical_cores == psutil.cpu_count()
    assert machine.memory_bytes == psutil.virtual_memory().total
    assert (machine.isa, machine.numa_nodes) == ([], 1)
    assert probe.snapshot()["free_disk_bytes"] is None
    assert probe.snapshot()["cpu_frequency_hz"] is None
    assert isinstance(probe.findings(), list)


def test_the_real_machine_is_described_and_stays_the_same_one():
    probe = create()
    machine = probe.machine()
    assert 1 <= machine.usable_cores <= machine.logical_cores
    assert machine.usable_cores <= len(os.sched_getaffinity(0))
    assert machine.fingerprint == create().machine().fingerprint
    assert {finding.severity for finding in probe.findings()} <= {"blocker", "warning", "note"}


BURN = """
import sys, time
print("up", flush=True)
sys.stdin.readline()
while time.process_time() < 0.3: pass
print("done", flush=True)
sys.stdin.read()
"""


def test_the_cpu_time_of_our_own_children_is_never_foreign_even_after_they_ended():
    """Judged against the children's own meter: what others do on this machine meanwhile cannot matter."""
    probe = create()
    with subprocess.Popen(
        [sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        child.stdout.readline()
        first = probe.snapshot(child.pid)
        before = probe._last
        child.stdin.write("go\n")
        child.stdin.flush()
        child.stdout.readline()
        probe.snapshot(child.pid)
        alive_s = probe._last.ours_s - before.ours_s
        child.stdin.close()
        child.wait()
    probe.snapshot()
    assert first["foreign_cpu_cores"] is None
    assert alive_s >= 0.2
    assert probe._last.ours_s - before.ours_s >= alive_s


LINES = st.lists(st.text("0123456789 :,/-kBMemTotalprocessor\tmax#%.", max_size=40), max_size=6).map("\n".join)


@settings(max_examples=150, deadline=None)
@given(LINES | st.text(max_size=60))
def test_whatever_the_kernel_writes_is_read_or_passed_over(text: str) -> None:
    parse_membership(text)
    parse_cpuinfo(text)
    assert all(size >= 0 for size in parse_meminfo(text).values())
    cores = parse_cpu_max(text)
    assert cores is None or cores > 0


@pytest.mark.parametrize("text", ["max", "0 100000", "-5 100000", "100000 0", "lots", ""])
def test_a_quota_that_is_none_limits_nothing(text: str, tmp_path: Path) -> None:
    for path, content in {
        "proc/self/cgroup": "0::/",
        "sys/fs/cgroup/cpu.max": text,
        "sys/fs/cgroup/memory.max": "-1",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    assert quota_cores(tmp_path) is None
    assert memory_limit_bytes(tmp_path) is None
