"""What a child inherits: session, descriptors, signals, limits."""

import json
import sys

from harness.case import case

# Runs inside the child. Prints facts that do not depend on numbers of this machine.
PROBE = r"""
import ctypes, json, os, re, resource, signal, sys
pid = os.getpid()
status = dict(l.rstrip('\n').split(':', 1) for l in open('/proc/self/status'))
stat = open('/proc/self/stat').read().rpartition(')')[2].split()
death = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(death), 0, 0, 0)
def link(fd):
    name = re.sub(r'\d+', 'N', os.readlink('/proc/self/fd/%s' % fd))
    return name + (' %o' % (os.stat('/proc/self/fd/%s' % fd).st_mode >> 12))
fds = sorted(int(f) for f in os.listdir('/proc/self/fd'))
facts = {
    'own group': os.getpgid(0) == pid, 'own session': os.getsid(0) == pid,
    'terminal': stat[4] != '0', 'foreground': stat[5] == str(pid),
    'parent death signal': death.value,
    'descriptors above 2': len([f for f in fds if f > 2]) - 1,
    'links': [link(f) for f in (0, 1, 2)],
    'flags of 0': __import__('fcntl').fcntl(0, 3) & (os.O_NONBLOCK | os.O_ACCMODE),
    'flags of 1': __import__('fcntl').fcntl(1, 3) & os.O_NONBLOCK,
    'blocked': status['SigBlk'].strip(),
    'ignored': '%x' % (int(status['SigIgn'], 16) & ~(1 << 12 | 1 << 24 | 3 << 31)),
    'umask': status['Umask'].strip(), 'no new privs': status['NoNewPrivs'].strip(),
    'seccomp': status['Seccomp'].strip(), 'groups': status['Groups'].strip(),
    'capabilities': [status[k].strip() for k in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')],
    'limits': [resource.getrlimit(getattr(resource, n)) for n in sorted(dir(resource))
               if n.startswith('RLIMIT_')],
    'nice': os.nice(0), 'oom': open('/proc/self/oom_score_adj').read().strip(),
    'argv0': open('/proc/self/cmdline', 'rb').read().split(b'\0')[0].decode(),
    'environment': sorted(os.environ), 'cwd': os.getcwd(),
}
print(json.dumps(facts))
"""


async def facts(t, **more):
    c = await t.connect()
    p = await c.start([sys.executable, "-c", PROBE], env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
                      **more)
    await p.until_closed()
    text = p.text("pty" if more.get("tty") else "stdout")
    return json.loads(text) if text.startswith("{") else p.summary()


@case("pipes")
async def pipes(t):
    t.see("facts", await facts(t))


@case("pipes with stdin")
async def pipes_stdin(t):
    t.see("facts", await facts(t, pipeStdin=True))


@case("terminal")
async def terminal(t):
    t.see("facts", await facts(t, tty=True))


@case("terminal with stdin")
async def terminal_stdin(t):
    t.see("facts", await facts(t, tty=True, pipeStdin=True))


@case("signals of a shell")
async def shell_signals(t):
    """SIGPIPE is not ignored: a writer dies when its reader leaves."""
    c = await t.connect()
    t.see("pipe", await c.finish_of("(sleep 0.1; yes; echo $? >&2) | true; exit 0"))
