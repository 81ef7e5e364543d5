"""A small aarch64 machine: Debian's kernel under qemu-system, with unit tests in its memory."""

import lzma
import pathlib
import re
import shutil
import subprocess
import tempfile

# Some kernels lack features of tmpfs that these programs test: they get an ext4 as /tmp.
ON_DISK = ("fs_devices", "fs_meta")
DISK = "32M"

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm /tmp
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
insmod /loop.ko
export PATH=/bin LD_LIBRARY_PATH=/lib
# The kernel's messages would come between those of the tests.
dmesg -n 1
for name in {names}; do
    umount /tmp 2>/dev/null
    mount -t tmpfs -o mode=1777 tmp /tmp
    case " {on_disk} " in
    *" $name "*) mount -t ext4 -o loop /disk /tmp && chmod 1777 /tmp ;;
    esac
    echo "=== $name"
    /tests/test_$name 2>&1
    echo "=== $name ended: $?"
done
poweroff -f
"""


def libraries(program, places):
    """Lists the shared libraries of the programs, with the loader."""
    wanted, found = [program], {}
    while wanted:
        said = subprocess.run(["readelf", "-ld", wanted.pop()], capture_output=True, text=True,
                              check=True).stdout
        names = re.findall(r"\(NEEDED\).*\[(.*)\]", said)
        names += [pathlib.Path(p).name for p in re.findall(r"interpreter: (.*)\]", said)]
        for name in names:
            if name not in found:
                found[name] = next(p / name for p in places if (p / name).exists())
                wanted.append(found[name])
    return found


def unpacked(path):
    """Returns the content of a kernel module, which may be compressed."""
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def image(directory, programs, machine, places):
    """Makes an initramfs with the test programs; returns its path."""
    tree = directory / "tree"
    for name in ("bin", "lib", "tests", "proc", "sys", "dev", "etc", "usr", "var"):
        (tree / name).mkdir(parents=True)
    shutil.copy(machine / "root/bin/busybox", tree / "bin/busybox")
    for name, program in programs.items():
        shutil.copy(program, tree / "tests" / f"test_{name}")
        for library, path in libraries(program, places).items():
            shutil.copy(path, tree / "lib" / library)
    loop, = (machine / "root/lib/modules").glob("*/kernel/drivers/block/loop.ko*")
    (tree / "loop.ko").write_bytes(unpacked(loop))
    subprocess.run(["/usr/sbin/mke2fs", "-q", "-t", "ext4", tree / "disk", DISK], check=True,
                   stdout=subprocess.DEVNULL)
    (tree / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    (tree / "init").write_text(INIT.format(names=" ".join(programs), on_disk=" ".join(ON_DISK)))
    (tree / "init").chmod(0o755)
    packed = directory / "initramfs"
    with packed.open("wb") as out:
        names = subprocess.run(["find", ".", "-print0"], cwd=tree, capture_output=True, check=True)
        subprocess.run(["cpio", "--quiet", "-0", "-o", "-H", "newc"], cwd=tree, check=True,
                       input=names.stdout, stdout=out)
    return packed


def run(programs, machine, places, seconds):
    """Boots and runs the test programs; returns the output and exit status of each."""
    kernel, = (machine / "root/boot").glob("vmlinuz-*")
    with tempfile.TemporaryDirectory() as scratch:
        packed = image(pathlib.Path(scratch), programs, machine, places)
        command = ["qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a72", "-smp", "2",
                   "-m", "1024", "-nographic", "-no-reboot", "-nic", "none", "-kernel", kernel,
                   "-initrd", packed, "-append", "console=ttyAMA0 quiet panic=-1"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=seconds, check=False)
            text = done.stdout
        except subprocess.TimeoutExpired as late:
            text = late.stdout or b""
    text = text.decode(errors="replace").replace("\r\n", "\n")
    results = {}
    for name in programs:
        match = re.search(rf"^=== {name}\n(.*)^=== {name} ended: (\d+)$", text,
                          re.MULTILINE | re.DOTALL)
        results[name] = (match.group(1), int(match.group(2))) if match else (text[-4000:], None)
    return results
