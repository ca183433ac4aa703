"""What the kernel's files say of caches, buses, disks, containers and errors: recorded trees, read."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from assay.probes import disks, host, pci, software, topology
from assay.probes.files import Files
from assay.probes.kernel_log import parse_xids, xids
from assay.probes.limits import read_limits
from assay.probes.memory import chosen, read_memory
from assay.records.snapshot import Xid
from tests.unit.test_probes import tree


def test_caches_that_several_processors_share_count_once(tmp_path):
    files = {}
    for cpu in range(4):
        folder = f"sys/devices/system/cpu/cpu{cpu}/cache"
        for index, (level, kind, size, shared) in enumerate(
            [(1, "Data", "32K", f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}"), (3, "Unified", "32768K", "0-3")]
        ):
            texts = {"level": str(level), "type": kind, "size": size, "shared_cpu_list": shared}
            files |= {f"{folder}/index{index}/{name}": text for name, text in texts.items()}
    found = topology.caches(Files(tree(tmp_path, files)))
    assert [(one.level, one.kind, one.size_bytes, one.instances) for one in found] == [
        (1, "data", 32 << 10, 2),
        (3, "unified", 32 << 20, 1),
    ]


def test_nodes_have_their_processors_and_memory(tmp_path):
    folder = "sys/devices/system/node"
    root = tree(tmp_path, {
        f"{folder}/node0/cpulist": "0-3", f"{folder}/node0/meminfo": "Node 0 MemTotal: 1000 kB\nNode 0 MemFree: 10 kB",
        f"{folder}/node10/cpulist": "4-7", f"{folder}/node2/cpulist": "8",
    })  # fmt: skip
    nodes = topology.numa_nodes(Files(root))
    assert [(node.index, node.cpus, node.memory_bytes) for node in nodes] == [
        (0, "0-3", 1_024_000), (2, "8", None), (10, "4-7", None),
    ]  # fmt: skip


def test_sockets_are_counted_and_none_where_they_are_not_numbered(tmp_path):
    cpus = {f"sys/devices/system/cpu/cpu{n}/topology/physical_package_id": str(n // 2) for n in range(4)}
    assert topology.sockets(Files(tree(tmp_path / "two", cpus))) == 2
    assert topology.sockets(Files(tree(tmp_path / "arm", dict.fromkeys(cpus, "-1")))) is None


def test_lists_of_processors_go_both_ways():
    assert topology.parse_list("0-2,8, 10-11") == {0, 1, 2, 8, 10, 11}
    assert topology.parse_list("") == topology.parse_list("x-3") == set()
    assert topology.list_of({3, 0, 1, 10}) == "0-1,3,10"
    assert topology.list_of([]) == ""


def test_memory_says_how_it_is_handed_out(tmp_path):
    root = tree(tmp_path, {
        "proc/meminfo": "MemAvailable: 100 kB\nSwapTotal: 8 kB\nSwapFree: 3 kB\nHugePages_Total: 4\n"
                        "HugePages_Free: 1\nHugepagesize: 2048 kB",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "proc/sys/kernel/numa_balancing": "1",
    })  # fmt: skip
    memory = read_memory(Files(root))
    assert (memory.available_bytes, memory.swap_bytes, memory.swap_used_bytes) == (102_400, 8192, 5120)
    assert (memory.hugepages, memory.hugepages_free, memory.hugepage_bytes) == (4, 1, 2 << 20)
    assert (memory.transparent_hugepages, memory.numa_balancing) == ("madvise", True)
    assert chosen("none at all") is None


MOUNTS = """\
22 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw
23 22 0:21 / /proc rw - proc proc rw
24 22 0:45 / /mnt/my\\040share rw - nfs4 server:/models rw
25 22 8:16 / /data rw - xfs /dev/sdb rw
broken line
"""


def test_mounts_are_read_with_spaces_in_their_names():
    mounts = disks.parse_mountinfo(MOUNTS)
    assert set(mounts) == {"/", "/proc", "/mnt/my share", "/data"}
    assert (mounts["/"].device, mounts["/"].filesystem, mounts["/"].source) == ("259:2", "ext4", "/dev/nvme0n1p2")


def test_the_kind_of_a_disk_follows_from_its_device(tmp_path):
    tree(tmp_path, {"sys/devices/nvme0n1/nvme0n1p2/partition": "2", "sys/devices/sdb/queue/rotational": "1"})
    blocks = tmp_path / "sys/dev/block"
    blocks.mkdir(parents=True)
    (blocks / "259:2").symlink_to(tmp_path / "sys/devices/nvme0n1/nvme0n1p2")
    (blocks / "8:16").symlink_to(tmp_path / "sys/devices/sdb")
    mounts = disks.parse_mountinfo(MOUNTS)
    kinds = {path: disks.kind_of(Files(tmp_path), mount) for path, mount in mounts.items()}
    assert kinds == {"/": "nvme", "/proc": "unknown", "/mnt/my share": "network", "/data": "hdd"}


def test_the_campaigns_disk_of_the_real_machine_is_found():
    found = disks.read_disks(Files(), Path.cwd())
    assert [disk for disk in found if "campaign" in disk.roles]
    assert all(disk.total_bytes >= disk.free_bytes >= 0 for disk in found)


def pci_tree(root: Path, devices: dict[str, tuple[str, str]]) -> Files:
    files = {}
    for bus_id, (vendor, kind) in devices.items():
        files |= {f"sys/bus/pci/devices/{bus_id}/vendor": vendor, f"sys/bus/pci/devices/{bus_id}/class": kind}
    return Files(tree(root, files))


def test_gpus_are_found_on_the_bus_and_network_cards_of_their_makers_are_not(tmp_path):
    files = pci_tree(tmp_path, {
        "0000:10:00.0": ("0x10de", "0x030200"), "0000:20:00.0": ("0x1002", "0x120000"),
        "0000:30:00.0": ("0x10de", "0x068000"), "0000:40:00.0": ("0x8086", "0x030000"),
    })  # fmt: skip
    assert [(gpu.bus_id, gpu.vendor) for gpu in pci.gpus_on_bus(files)] == [
        ("0000:10:00.0", "nvidia"), ("0000:20:00.0", "amd"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("types", "state"),
    [([], "off"), (["identity"], "passthrough"), (["identity", "DMA-FQ"], "translating"), (["DMA"], "translating"),
     (["blocked"], None)],
)  # fmt: skip
def test_the_iommus_state_follows_from_its_groups(tmp_path, types, state):
    (tmp_path / "sys/kernel/iommu_groups").mkdir(parents=True)
    files = Files(tree(tmp_path, {f"sys/kernel/iommu_groups/{n}/type": kind for n, kind in enumerate(types)}))
    assert pci.iommu(files) == state


def test_without_the_kernels_list_nothing_is_said_of_the_iommu(tmp_path):
    assert pci.iommu(Files(tmp_path)) is None


def config(control: int) -> bytes:
    """A configuration space with another capability at 0x100 and ACS at 0x148."""
    space = bytearray(4096)
    struct.pack_into("<I", space, 0x100, 0x148 << 20 | 1 << 16 | 0x0001)
    struct.pack_into("<IHH", space, 0x148, 1 << 16 | 0x000D, 0x5F, control)
    return bytes(space)


@pytest.mark.parametrize(
    ("space", "redirecting"),
    [(config(0x1D), True), (config(0x04), True), (config(0x11), False), (bytes(4096), False), (bytes(64), None)],
)
def test_acs_is_read_where_the_whole_configuration_is_shown(space, redirecting):
    assert pci.redirects(space) is redirecting


def test_only_bridges_are_asked_about_acs(tmp_path):
    files = pci_tree(tmp_path, {"0000:00:01.0": ("0x8086", "0x060400"), "0000:10:00.0": ("0x10de", "0x030200")})
    folder = tmp_path / "sys/bus/pci/devices"
    (folder / "0000:10:00.0/config").write_bytes(config(0x1D))
    assert pci.acs_redirect(files) is None
    (folder / "0000:00:01.0/config").write_bytes(config(0x11))
    assert pci.acs_redirect(files) is False
    (folder / "0000:00:01.0/config").write_bytes(config(0x1D))
    assert pci.acs_redirect(files) is True


LOG = """\
[  100.0] NVRM: Xid (PCI:0000:C1:00): 79, pid=1234, name=vllm, GPU has fallen off the bus.
[  101.0] NVRM: Xid (PCI:0000:C1:00): 79, pid='<unknown>', name=<unknown>
[  102.0] usb 1-1: new device
[  103.0] NVRM: Xid (PCI:0000:10:00): 31, pid=99, MMU fault
"""


def test_errors_in_the_kernels_log_are_counted_by_code_and_gpu(tmp_path):
    expected = [Xid(code=31, bus_id="0000:10:00", count=1), Xid(code=79, bus_id="0000:c1:00", count=2)]
    assert parse_xids(LOG.splitlines()) == expected
    assert xids(Files(tree(tmp_path, {"var/log/kern.log": LOG}))) == expected


def test_a_log_that_cannot_be_read_is_unknown_and_one_without_errors_is_empty(tmp_path):
    assert xids(Files(tmp_path)) is None
    assert xids(Files(tree(tmp_path, {"var/log/syslog": "calm"}))) == []


@pytest.mark.parametrize(
    ("files", "environment", "kind"),
    [
        ({}, {}, None),
        ({".dockerenv": ""}, {}, "docker"),
        ({"proc/1/cgroup": "0::/docker/abc"}, {}, "docker"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"run/.containerenv": ""}, {}, "podman"),
        ({"proc/1/cgroup": "0::/lxc/web"}, {}, "lxc"),
        ({}, {"container": "systemd-nspawn"}, "systemd-nspawn"),
    ],
)
def test_the_kind_of_container_is_told(tmp_path, files, environment, kind):
    assert host.container(Files(tree(tmp_path, files)), environment) == kind


def test_only_harmless_kernel_parameters_are_kept():
    text = "BOOT_IMAGE=/vmlinuz root=UUID=secret iommu=pt quiet isolcpus=2-3 password=x nosmt"
    assert host.parse_parameters(text) == {"iommu": "pt", "isolcpus": "2-3", "nosmt": ""}


def test_a_virtual_machine_is_named_by_its_firmware(tmp_path):
    files = Files(
        tree(tmp_path, {"sys/class/dmi/id/sys_vendor": "QEMU", "sys/class/dmi/id/product_name": "Standard PC"})
    )
    assert host.read_platform(files, is_virtual=True, environment={}).virtual_machine == "QEMU Standard PC"
    assert host.read_platform(files, is_virtual=False, environment={}).virtual_machine is None
    assert host.read_platform(Files(tmp_path / "x"), is_virtual=True, environment={}).virtual_machine == "unknown"


@pytest.mark.parametrize(
    ("versions", "cuda"),
    [
        ({"torch": "2.11.0+cu130"}, (13, 0)),
        ({"torch": "2.4.0+cu121"}, (12, 1)),
        ({"torch": "2.11.0+cpu"}, None),
        ({"torch": "2.6.0", "nvidia-cuda-runtime-cu12": "12.4.127"}, (12, 4)),
        ({"nvidia-cuda-runtime-cu12": "12.4.127"}, None),
        ({}, None),
    ],
)
def test_the_cuda_that_torch_was_built_for_follows_from_versions_alone(versions, cuda):
    assert software.torch_cuda(versions) == cuda


def test_the_systems_own_libraries_are_found_and_ours_are_named(tmp_path):
    root = tree(tmp_path, {
        "usr/local/cuda/version.json": '{"cuda": {"name": "CUDA SDK", "version": "13.0.1"}}',
        "opt/rocm/.info/version": "7.0.0-38\n", "usr/lib/x86_64-linux-gnu/libnccl.so.2.28.3": "",
    })  # fmt: skip
    found = software.read_software(Files(root))
    assert (found["cuda"], found["rocm"], found["nccl"]) == ("13.0.1", "7.0.0-38", "2.28.3")
    assert found["numpy"]
    assert "cuda" not in software.read_software(Files(tree(tmp_path / "b", {"usr/local/cuda/version.json": "[]"})))


def test_limits_of_the_real_process_are_read_and_an_absent_shm_is_unknown(tmp_path):
    limits = read_limits(str(tmp_path))
    assert limits.open_files is None or limits.open_files > 0
    assert limits.shm_bytes
    assert read_limits(str(tmp_path / "absent")).unknown == ["shm_bytes"]


def test_files_that_are_not_there_or_no_numbers_are_none(tmp_path):
    files = Files(tree(tmp_path, {"number": "12\n", "word": "many"}))
    assert (files.number("number"), files.number("word"), files.number("absent")) == (12, None, None)
    assert files.folders("nothing/*") == []
