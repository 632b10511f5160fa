"""The tests of tests/packages/run: one release of all packages in a temporary folder, and its parts one by one.

    main.py [NAME...]     the tests with NAME in their names

Rule: every comparison has a judge beside the code under test: checksums come from sha256sum, archives are read by tar and
zipfile, npm installs, and the fields of manifests are compared with these. KODE_LS_BIN is the program for this machine.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from functools import cache
from pathlib import Path

import standins

ROOT = Path(__file__).resolve().parents[2]
PACK = ROOT / "server/packages/pack.py"
RELEASE = ROOT / "server/release"
MACHINE = os.uname().machine
HOST = f"{MACHINE}-unknown-linux-gnu"
NATIVE = f"{MACHINE}-unknown-linux-musl"
NPM = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}[MACHINE]
MANIFEST = (ROOT / "Cargo.toml").read_text()
VERSION = re.search(r'\[workspace\.package\]\nversion = "(.*?)"', MANIFEST)[1]
REPOSITORY = re.search(r'^repository = "(.*?)"', MANIFEST, re.MULTILINE)[1]
BASE = f"{REPOSITORY}/releases/download/v{VERSION}"
WINDOWS = "x86_64-pc-windows-gnu"
HELPER = "kode-ls-helper"

# The platform of VS Code, and the triple of the program in it.
PLATFORMS = {
    "linux-x64": "x86_64-unknown-linux-musl",
    "alpine-x64": "x86_64-unknown-linux-musl",
    "linux-arm64": "aarch64-unknown-linux-musl",
    "alpine-arm64": "aarch64-unknown-linux-musl",
    "win32-x64": WINDOWS,
    "darwin-x64": "x86_64-apple-darwin",
    "darwin-arm64": "aarch64-apple-darwin",
}
# The packages of npm, with os and cpu.
PACKAGES = {
    "linux-x64": ("linux", "x64"),
    "linux-arm64": ("linux", "arm64"),
    "win32-x64": ("win32", "x64"),
    "darwin-x64": ("darwin", "x64"),
    "darwin-arm64": ("darwin", "arm64"),
}

work = Path(tempfile.mkdtemp(prefix="kode-packages-"))
dist = work / "dist"
left_out: list[str] = []


class LeftOut(Exception):
    """A test whose program or schemas are absent: it counts neither as passed nor as failed."""


def run(*command, code: int | None = 0, **options) -> subprocess.CompletedProcess:
    """Runs a command; an exit code other than `code` is an error; None allows each."""
    options = {"capture_output": True, "text": True, "timeout": 300, **options}
    done = subprocess.run([str(part) for part in command], **options)
    if code is not None and done.returncode != code:
        raise AssertionError(f"{command[0]} ended with {done.returncode}, not {code}:\n{done.stdout}{done.stderr}")
    return done


def refused(*command) -> str:
    """The error of a command that has to fail."""
    done = run(*command, code=None)
    assert done.returncode not in (0, None), f"{command} did not fail: {done.stdout}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


@cache
def programs() -> dict[str, Path]:
    """The program of each triple: the one under test for this machine, stand-ins for the others."""
    files = {triple: work / "programs" / triple / program_name(triple) for triple in (HOST, *set(PLATFORMS.values()))}
    for file in files.values():
        file.parent.mkdir(parents=True)
    own = Path(os.environ["KODE_LS_BIN"])
    for from_, to in ((own, files[HOST]), (own.with_name(HELPER), helper_of(HOST))):
        shutil.copy(from_, to)
        if shutil.which("strip"):
            # The debug information is most of the file.
            run("strip", to)
    stands = {
        "x86_64-unknown-linux-musl": standins.elf("x86-64", VERSION),
        "aarch64-unknown-linux-musl": standins.elf("arm64", VERSION),
        WINDOWS: standins.pe(VERSION),
        "x86_64-apple-darwin": standins.mach_o("x86-64", VERSION),
        "aarch64-apple-darwin": standins.mach_o("arm64", VERSION),
    }
    for triple, content in stands.items():
        for file in (files[triple], helper_of(triple)):
            if file is not None:
                file.write_bytes(content)
                file.chmod(0o755)
    return files


def helper_of(triple: str) -> Path | None:
    """The sandbox helper of a triple, which lies beside its program."""
    return None if triple == WINDOWS else work / "programs" / triple / HELPER


def archive_name(triple: str) -> str:
    return f"kode-ls-{VERSION}-{triple}{'.zip' if triple == WINDOWS else '.tar.gz'}"


def program_name(triple: str) -> str:
    return "kode-ls.exe" if triple == WINDOWS else "kode-ls"


@cache
def release() -> str:
    """Makes the release, and returns the output."""
    given = [f"{triple}={file}" for triple, file in programs().items()]
    return run(RELEASE, "--native-only", "--out", dist, "--program", *given).stdout


def sha256(name: str) -> str:
    return run("sha256sum", dist / name).stdout.split()[0]


# -- the order of functions -------------------------------------------------------------------------------------------


def linked(name: str, listed: list[str], *arguments: str) -> tuple[subprocess.CompletedProcess, Path]:
    """Links two objects with a list of functions, by stand-ins for zig and its lld that note how they are called."""
    folder = work / name
    (folder / "server/packages").mkdir(parents=True)
    (folder / "deps").mkdir()
    for script in ("function_order.py", "functions.txt"):
        shutil.copy(ROOT / "server/packages" / script, folder / "server/packages")
    if listed:
        hashes = [hashlib.sha256(function.encode()).hexdigest()[:10] for function in listed]
        (folder / "server/packages/functions.txt").write_text("".join(f"{line}\n" for line in ["# A list.", *hashes]))
    for source, names in {"one": ["cold", "called_first"], "two": ["_RNvNtCs1234_7example4main4last"]}.items():
        (folder / f"{source}.c").write_text("".join(f"void {function}(void) {{}}\n" for function in names))
        run("cc", "-c", "-o", folder / f"{source}.o", folder / f"{source}.c")
    linker, lld = folder / "cc-stand-in", folder / "zig-ld"
    linker.write_text('#!/bin/sh\necho "$@" >>linker.log\n[ -z "$ZIG_VERBOSE_LINK" ] || printf "ld.lld -r -o crt.o crt.c\\nld.lld -o deps/kode_ls-1a2b -s one.o two.o\\n" >&2\n')
    lld.write_text('#!/bin/sh\necho "$@" >>lld.log\n')
    for script in (linker, lld):
        script.chmod(0o755)
    environment = {**os.environ, "KODE_LS_LINKER": str(linker)}
    order = folder / "server/packages/function_order.py"
    return run(order, *arguments, code=None, cwd=folder, env=environment), folder


def test_a_program_is_linked_in_the_order_of_the_list():
    listed = ["example::main::last", "called_first", "gone"]
    done, folder = linked("ordered", listed, "-o", "deps/kode_ls-1a2b", "one.o")
    assert done.returncode == 0, done.stderr
    order = folder / "deps/kode_ls-1a2b.order"
    assert order.read_text().split() == ["_RNvNtCs1234_7example4main4last", "called_first"], order.read_text()
    by = "--symbol-ordering-file deps/kode_ls-1a2b.order --no-warn-symbol-ordering"
    calls = [f"{by} -o deps/kode_ls-1a2b -s one.o two.o", f"{by} -o kode-ls.symbols one.o two.o"]
    assert (folder / "lld.log").read_text().splitlines() == calls, (folder / "lld.log").read_text()


def test_other_programs_are_linked_as_they_are():
    done, folder = linked("unordered", [], "-o", "kode_ls_helper-1a2b", "one.o")
    assert done.returncode == 0, done.stderr
    assert (folder / "linker.log").read_text() == "-o kode_ls_helper-1a2b one.o\n"
    assert not (folder / "lld.log").exists(), "it was linked again"


def test_a_list_that_does_not_fit_the_program_is_refused():
    done, folder = linked("outdated", [], "-o", "deps/kode_ls-1a2b", "one.o")
    assert done.returncode == 1, done.stdout
    assert re.search(r"the program has 0 of the [0-9]{4,} functions of .*functions\.txt", done.stderr), done.stderr
    assert not (folder / "lld.log").exists(), "it was linked in no order"


# -- the release -----------------------------------------------------------------------------------------------------


def test_the_output_names_each_program_that_was_run_and_each_that_was_not():
    output = release()
    for triple in (HOST, NATIVE):
        assert f"run: the demo of the program for {triple}, in an empty home" in output, output
    for triple in set(programs()) - {HOST, NATIVE}:
        assert f"not run: the program for {triple}" in output, output
    assert "left out:" not in output, "a platform has no package:\n" + output


def test_the_files_are_exactly_the_expected_ones():
    release()
    expected = {"SHA256SUMS", f"kode-{VERSION}.vsix", f"kode-vscode-{VERSION}.cdx.json"}
    expected |= {f"kode-nvim-{VERSION}.tar.gz", f"kode-{VERSION}-1.src.rock", f"kode-ls-{VERSION}.tgz"}
    for triple in programs():
        expected |= {archive_name(triple), f"kode-ls-{VERSION}-{triple}.cdx.json"}
    expected |= {f"kode-{platform}-{VERSION}.vsix" for platform in PLATFORMS}
    expected |= {f"kode-ls-{platform}-{VERSION}.tgz" for platform in PACKAGES}
    expected |= {"homebrew/kode-ls.rb", "scoop/kode-ls.json", "nix/kode-ls.nix"}
    expected |= {f"winget/kode-ls.kode-ls{kind}.yaml" for kind in ("", ".installer", ".locale.en-US")}
    expected |= {"acp-registry/kode-ls/agent.json", "acp-registry/kode-ls/icon.svg"}
    found = {path.relative_to(dist).as_posix() for path in dist.rglob("*") if path.is_file()}
    assert found == expected, f"missing: {sorted(expected - found)}, unexpected: {sorted(found - expected)}"


def test_the_checksums_are_those_of_all_files():
    release()
    checked = run("sha256sum", "--strict", "-c", "SHA256SUMS", cwd=dist).stdout.splitlines()
    files = [path for path in dist.rglob("*") if path.is_file()]
    assert len(checked) == len(files) - 1, f"{len(checked)} checksums for {len(files)} files"
    for change in ("changed", "added"):
        folder = work / f"dist-{change}"
        folder.mkdir()
        (folder / "one").write_text("one")
        run(sys.executable, PACK, "sums", folder)
        run(sys.executable, PACK, "verify", folder)
        (folder / ("one" if change == "changed" else "two")).write_text("two")
        assert "not as SHA256SUMS says" in refused(sys.executable, PACK, "verify", folder)


def documentation() -> set[str]:
    """The files of server/docs that git has, or would take."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "server/docs", cwd=ROOT).stdout
    return {name.removeprefix("server/") for name in listed.split("\n") if name and (ROOT / name).exists()}


def test_an_archive_has_the_program_and_its_texts_and_nothing_else():
    release()
    texts = {"README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-LICENSES.txt"} | documentation()
    for triple, file in programs().items():
        folder = f"kode-ls-{VERSION}-{triple}"
        name = f"{folder}/{program_name(triple)}"
        executables = {name} if triple == WINDOWS else {name, f"{folder}/{HELPER}"}
        expected = {f"{folder}/{text}" for text in texts} | executables
        if triple == WINDOWS:
            with zipfile.ZipFile(dist / archive_name(triple)) as archive:
                found = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
                times = {entry.date_time for entry in archive.infolist()}
                content = archive.read(name)
        else:
            with tarfile.open(dist / archive_name(triple)) as archive:
                files = [entry for entry in archive.getmembers() if not entry.isdir()]
                found = {entry.name: entry.mode for entry in files}
                times = {entry.mtime for entry in archive.getmembers()}
                assert {(entry.uid, entry.gid, entry.uname) for entry in archive.getmembers()} == {(0, 0, "")}, triple
                content = archive.extractfile(name).read()
        assert set(found) == expected, f"{triple}: {sorted(set(found) ^ expected)}"
        assert {found[entry] for entry in executables} == {0o755}, f"{triple}: {found}"
        assert {mode for entry, mode in found.items() if entry not in executables} == {0o644}, triple
        assert len(times) == 1, f"{triple}: the times are {times}"
        assert hashlib.sha256(content).digest() == hashlib.sha256(file.read_bytes()).digest(), triple


def test_the_same_files_make_the_same_archive():
    release()
    seconds = run("git", "log", "-1", "--format=%ct", cwd=ROOT).stdout.strip()
    for triple in (NATIVE, WINDOWS):
        name = archive_name(triple)
        again = work / "again" / triple
        again.mkdir(parents=True)
        shutil.unpack_archive(dist / name, again)
        folder = again / f"kode-ls-{VERSION}-{triple}"
        # zipfile does not restore modes; another machine's times and owners differ anyway.
        (folder / program_name(triple)).chmod(0o775)
        for path in folder.rglob("*"):
            os.utime(path, (1, 1))
        run(sys.executable, PACK, "archive", folder, again / name, env={**os.environ, "SOURCE_DATE_EPOCH": seconds})
        assert (again / name).read_bytes() == (dist / name).read_bytes(), f"{name} has other bytes"


def test_the_list_of_parts_is_that_of_the_system():
    release()
    parts = {}
    for triple in programs():
        bom = json.loads((dist / f"kode-ls-{VERSION}-{triple}.cdx.json").read_text())
        parts[triple] = {component["name"] for component in bom["components"]}
    assert "landlock" in parts[NATIVE] and "sysinfo" not in parts[NATIVE]
    assert "sysinfo" in parts[WINDOWS] and "landlock" not in parts[WINDOWS]
    assert "landlock" not in parts["aarch64-apple-darwin"] and "rustix" in parts["aarch64-apple-darwin"]


def test_an_extension_has_the_program_of_its_platform():
    release()
    for platform, triple in PLATFORMS.items():
        with zipfile.ZipFile(dist / f"kode-{platform}-{VERSION}.vsix") as package:
            assert f'TargetPlatform="{platform}"' in package.read("extension.vsixmanifest").decode(), platform
            found = {entry.filename: entry for entry in package.infolist() if entry.filename.startswith("extension/bin/")}
            files = {f"extension/bin/{file.name}": file for file in (programs()[triple], helper_of(triple)) if file}
            assert set(found) == set(files), f"{platform}: {sorted(found)}"
            for name, entry in found.items():
                assert entry.external_attr >> 16 & 0o111 == 0o111, f"{platform}: {name} is not executable"
                assert package.read(entry) == files[name].read_bytes(), f"{platform}: {name}"
    with zipfile.ZipFile(dist / f"kode-{VERSION}.vsix") as package:
        assert "TargetPlatform" not in package.read("extension.vsixmanifest").decode()
        assert not [name for name in package.namelist() if name.startswith("extension/bin/")]


def test_the_static_program_is_preferred_and_the_other_serves_where_it_is_alone():
    platforms = lambda *triples: run(sys.executable, PACK, "platforms", *triples).stdout.split("\n")
    both = platforms("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl")
    assert both[:-1] == ["linux-x64 x86_64-unknown-linux-musl", "alpine-x64 x86_64-unknown-linux-musl"], both
    assert platforms("x86_64-unknown-linux-gnu")[:-1] == ["linux-x64 x86_64-unknown-linux-gnu"]


def test_a_platform_without_a_package_is_named_with_the_next_step():
    missing = lambda system, *triples: run(sys.executable, PACK, "missing", system, *triples).stdout
    on_linux = missing("Linux", "x86_64-unknown-linux-gnu")
    assert "linux-x64" not in on_linux, on_linux
    assert "left out: darwin-arm64 (aarch64-apple-darwin): is linked on a Mac." in on_linux, on_linux
    assert "--program aarch64-apple-darwin=FILE" in on_linux, on_linux
    assert "win32-x64 (x86_64-pc-windows-gnu): `server/release --target x86_64-pc-windows-gnu` builds it" in on_linux
    on_mac = missing("Darwin", "aarch64-apple-darwin")
    assert "darwin-x64 (x86_64-apple-darwin): `server/release --target x86_64-apple-darwin` builds it" in on_mac, on_mac
    assert "win32-x64 (x86_64-pc-windows-gnu): is linked on Linux" in on_mac, on_mac


def test_a_wrong_argument_is_refused_before_anything_is_written():
    files = programs()
    out = work / "refused"
    error = refused(RELEASE, "--out", out, "--program", f"{WINDOWS}={files[NATIVE]}")
    assert f"cannot be the program for {WINDOWS}: it is ELF" in error, error
    error = refused(RELEASE, "--out", out, "--program", f"{NATIVE}={files[HOST]}")
    assert "needs a dynamic loader" in error, error
    error = refused(RELEASE, "--out", out, "--program", f"{NATIVE}={work}/nothing")
    assert "there is no file" in error, error
    alone = work / "alone"
    alone.mkdir()
    shutil.copy(files[NATIVE], alone / "kode-ls")
    error = refused(RELEASE, "--out", out, "--program", f"{NATIVE}={alone}/kode-ls")
    assert f"there is no {HELPER} beside {alone}/kode-ls" in error, error
    error = refused(RELEASE, "--out", out, "--target", "riscv64gc-unknown-linux-gnu")
    assert "no package is made for riscv64gc-unknown-linux-gnu. The triples are:" in error, error
    error = refused(RELEASE, "--out", out, "--target", "aarch64-apple-darwin", "--program-only")
    assert "does not link programs for aarch64-apple-darwin" in error, error
    error = refused(RELEASE, "--out", work, "--program", files[HOST])
    assert "is not empty" in error, error
    error = refused(sys.executable, PACK, "manifests", VERSION, "nowhere", out, f"{NATIVE}={files[NATIVE]}")
    assert "`nowhere` is no address" in error, error
    assert not out.exists(), "something was written"


# -- npm -------------------------------------------------------------------------------------------------------------


def tarball(name: str) -> dict[str, bytes]:
    """The files of an npm package, by their names below `package/`."""
    with tarfile.open(dist / name) as archive:
        files = [entry for entry in archive.getmembers() if entry.isfile()]
        return {entry.name.removeprefix("package/"): archive.extractfile(entry).read() for entry in files}


def test_an_npm_package_has_the_program_of_its_platform():
    release()
    texts = {"package.json", "README.md", "LICENSE-MIT", "LICENSE-APACHE"}
    wrapper = tarball(f"kode-ls-{VERSION}.tgz")
    assert set(wrapper) == texts | {"bin/kode-ls.mjs"}, sorted(wrapper)
    manifest = json.loads(wrapper["package.json"])
    assert manifest["version"] == VERSION and manifest["bin"] == {"kode-ls": "bin/kode-ls.mjs"}, manifest
    assert manifest["optionalDependencies"] == {f"@kode-ls/{platform}": VERSION for platform in PACKAGES}, manifest
    for platform, (system, cpu) in PACKAGES.items():
        triple = PLATFORMS[platform]
        files = tarball(f"kode-ls-{platform}-{VERSION}.tgz")
        packed = {f"bin/{file.name}": file for file in (programs()[triple], helper_of(triple)) if file}
        assert set(files) == texts | set(packed) | {"THIRD-PARTY-LICENSES.txt"}, sorted(files)
        assert all(files[name] == file.read_bytes() for name, file in packed.items()), platform
        manifest = json.loads(files["package.json"])
        assert (manifest["name"], manifest["version"]) == (f"@kode-ls/{platform}", VERSION), manifest
        assert (manifest["os"], manifest["cpu"]) == ([system], [cpu]), manifest
        assert not {"libc", "bin", "scripts", "optionalDependencies"} & set(manifest), manifest


def test_a_program_for_glibc_is_not_installed_beside_another_c_library():
    contents = work / "glibc"
    contents.mkdir()
    for name in ("kode-ls", HELPER, "THIRD-PARTY-LICENSES.txt"):
        (contents / name).write_text("")
    run(sys.executable, PACK, "npm", VERSION, work / "glibc-npm", f"{HOST}={contents}")
    manifest = json.loads((work / "glibc-npm" / NPM / "package.json").read_text())
    assert manifest["libc"] == ["glibc"], manifest


def npm_install(name: str, *arguments, only: list[str] | None = None) -> Path:
    """Installs `kode-ls` into an empty folder from the packages of the release; with `only`, from one that has just these."""
    release()
    folder = work / name
    folder.mkdir()
    wrapper = dist / f"kode-ls-{VERSION}.tgz"
    if only is not None:
        contents = work / "contents"
        for triple in only:
            shutil.unpack_archive(dist / archive_name(triple), contents)
        made = [f"{triple}={contents}/kode-ls-{VERSION}-{triple}" for triple in only]
        run(sys.executable, PACK, "npm", VERSION, folder / "made", *made)
        run("npm", "pack", "--silent", "--pack-destination", folder, cwd=folder / "made/kode-ls")
        wrapper = folder / wrapper.name
    # Packages that come from a registry otherwise, from files.
    overrides = {f"@kode-ls/{one}": f"file:{dist}/kode-ls-{one}-{VERSION}.tgz" for one in PACKAGES}
    project = {"private": True, "dependencies": {"kode-ls": f"file:{wrapper}"}, "overrides": overrides}
    (folder / "package.json").write_text(json.dumps(project))
    install = ["npm", "install", "--offline", "--no-audit", "--no-fund", "--no-update-notifier", *arguments]
    run(*install, cwd=folder, env={**os.environ, "npm_config_cache": str(work / "npm-cache")})
    return folder


@cache
def installed() -> Path:
    return npm_install("installed")


def installed_program(folder: Path) -> Path:
    return folder / "node_modules/@kode-ls" / NPM / "bin/kode-ls"


@cache
def installed_for_use() -> Path:
    """The same with the programs under test in the place of the stand-ins that npm has installed."""
    folder = work / "used"
    shutil.copytree(installed(), folder, symlinks=True)
    program = installed_program(folder)
    for stand_in, own in ((program, programs()[HOST]), (program.with_name(HELPER), helper_of(HOST))):
        stand_in.unlink()
        os.link(own, stand_in)
    return folder


def test_npm_installs_the_package_that_fits_and_npx_runs_it():
    folder = installed()
    found = sorted(path.name for path in (folder / "node_modules/@kode-ls").iterdir())
    assert found == [NPM], f"installed are {found}"
    assert installed_program(folder).stat().st_mode & 0o111 == 0o111, "npm has not kept the mode"
    output = run("npx", "--no-install", "kode-ls", "--version", cwd=folder).stdout
    assert output == f"kode-ls {VERSION}\n", output


def starter(folder: Path) -> Path:
    return folder / "node_modules/.bin/kode-ls"


def frame(message: dict) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def answer(stream) -> dict:
    """The next response of a language server."""
    while True:
        length = 0
        while line := stream.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        assert length > 0, "the server has closed its output"
        message = json.loads(stream.read(length))
        if "id" in message and "method" not in message:
            return message


def started(folder: Path) -> subprocess.Popen:
    """The language server behind the starter, after `initialize`."""
    home = work / f"home-{time.monotonic_ns()}"
    home.mkdir()
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    pipe = subprocess.PIPE
    server = subprocess.Popen([starter(folder)], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment)
    server.stdin.write(frame({"id": 1, "method": "initialize", "params": {"processId": None, "capabilities": {}, "rootUri": None}}))
    server.stdin.flush()
    result = answer(server.stdout)["result"]
    assert result["serverInfo"] == {"name": "kode-ls", "version": VERSION}, result.get("serverInfo")
    return server


def test_the_starter_passes_on_streams_and_the_exit_code():
    server = started(installed_for_use())
    server.stdin.write(frame({"id": 2, "method": "shutdown"}))
    server.stdin.flush()
    assert answer(server.stdout)["id"] == 2
    server.stdin.write(frame({"method": "exit"}))
    server.stdin.close()
    assert server.wait(60) == 0
    program = installed_program(installed_for_use())
    for arguments in (["--version"], ["no-such-command"], ["config", "get", "no.such.key"]):
        direct = run(program, *arguments, code=None)
        by_starter = run(starter(installed_for_use()), *arguments, code=None)
        assert (by_starter.returncode, by_starter.stdout, by_starter.stderr) == (
            direct.returncode,
            direct.stdout,
            direct.stderr,
        ), f"{arguments}: {by_starter}"
    assert run(program, "no-such-command", code=None).returncode != 0


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_there(pid: int) -> bool:
    """Whether the process has not ended; one that has ended and waits for its parent does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def test_the_starter_passes_on_signals_and_ends_as_the_program_does():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        direct = started_program(number)
        server = started(installed_for_use())
        [program] = children(server.pid)
        server.send_signal(number)
        assert server.wait(60) == direct, f"{number.name}: {server.returncode}, not {direct}"
        assert not is_there(program), f"{number.name}: the program has outlived its starter"
    # A signal that no process can catch ends the starter in the same way as the program.
    server = started(installed_for_use())
    [program] = children(server.pid)
    os.kill(program, signal.SIGKILL)
    assert server.wait(60) == -signal.SIGKILL, server.returncode


def started_program(number: signal.Signals) -> int:
    """The exit of the program itself after this signal."""
    folder = work / f"direct-{number.name}"
    (folder / "node_modules/.bin").mkdir(parents=True)
    os.link(programs()[HOST], folder / "node_modules/.bin/kode-ls")
    server = started(folder)
    server.send_signal(number)
    return server.wait(60)


# Prints each signal that it gets.
LISTENER = '''#!/usr/bin/env python3
import signal
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: print(signal.Signals(number).name, flush=True))
print("ready", flush=True)
while True:
    signal.pause()
'''


def test_in_a_terminal_the_starter_leaves_keys_to_the_terminal():
    folder = work / "terminal"
    shutil.copytree(installed(), folder, symlinks=True)
    installed_program(folder).write_text(LISTENER)
    ours, theirs = os.openpty()
    child = subprocess.Popen([starter(folder)], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)

    def output_until(word: str) -> str:
        text = ""
        while word not in text:
            text += os.read(ours, 1000).decode()
        return text

    output_until("ready")
    [program] = children(child.pid)
    # The terminal sends SIGINT to the whole group: a copy by the starter would be a second one.
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGTERM)
    text = output_until("SIGTERM")
    assert "SIGINT" not in text, text
    os.kill(program, signal.SIGKILL)
    assert child.wait(60) == -signal.SIGKILL
    os.close(ours)


def test_a_platform_package_that_is_not_installed_is_named_with_the_next_step():
    folder = npm_install("omitted", "--omit=optional")
    done = run(starter(folder), "--version", code=1)
    assert f"the package @kode-ls/{NPM} is not installed" in done.stderr, done.stderr
    assert f"npm install --include=optional kode-ls@{VERSION}" in done.stderr, done.stderr
    assert done.stdout == "", done.stdout


def test_a_platform_without_a_package_gets_the_list_of_those_with_one():
    folder = npm_install("elsewhere", only=[WINDOWS])
    done = run(starter(folder), "--version", code=1)
    assert f"there is no package for {NPM}. Version {VERSION} has: win32-x64." in done.stderr, done.stderr


def test_packages_of_two_versions_are_refused():
    folder = work / "versions"
    shutil.copytree(installed(), folder, symlinks=True)
    file = folder / "node_modules/@kode-ls" / NPM / "package.json"
    file.write_text(file.read_text().replace(f'"version": "{VERSION}"', '"version": "0.0.1"'))
    done = run(starter(folder), "--version", code=1)
    assert f"@kode-ls/{NPM} has version 0.0.1, and kode-ls {VERSION}" in done.stderr, done.stderr


# -- package managers ------------------------------------------------------------------------------------------------


def test_manifests_have_the_addresses_and_checksums_of_the_archives():
    release()
    formula = (dist / "homebrew/kode-ls.rb").read_text()
    found = dict(re.findall(r'url "(.*?)"\n +sha256 "(.*?)"', formula))
    four = [triple for triple in programs() if triple.endswith(("-musl", "-darwin"))]
    assert found == {f"{BASE}/{archive_name(triple)}": sha256(archive_name(triple)) for triple in four}, formula
    assert "depends_on :linux" not in formula, formula
    nix = (dist / "nix/kode-ls.nix").read_text()
    found = dict(re.findall(r'url = "(.*?)";\n +hash = "(.*?)";', nix))
    integrity = lambda name: "sha256-" + base64.b64encode(bytes.fromhex(sha256(name))).decode()
    assert found == {f"{BASE}/{archive_name(triple)}": integrity(archive_name(triple)) for triple in four}, nix
    assert f'version = "{VERSION}"' in nix and f'version "{VERSION}"' in formula

    name = archive_name(WINDOWS)
    scoop = json.loads((dist / "scoop/kode-ls.json").read_text())
    assert (scoop["version"], scoop["bin"]) == (VERSION, "kode-ls.exe"), scoop
    folder = f"kode-ls-{VERSION}-{WINDOWS}"
    assert scoop["architecture"] == {"64bit": {"url": f"{BASE}/{name}", "hash": sha256(name), "extract_dir": folder}}, scoop
    following = scoop["autoupdate"]["architecture"]["64bit"]
    assert following["url"].replace("$version", VERSION) == f"{BASE}/{name}" and VERSION not in following["url"], scoop
    installer = (dist / "winget/kode-ls.kode-ls.installer.yaml").read_text()
    assert f"InstallerUrl: {BASE}/{name}\n    InstallerSha256: {sha256(name).upper()}\n" in installer, installer
    assert f"RelativeFilePath: {folder}\\kode-ls.exe\n" in installer, installer
    for file in (dist / "winget").iterdir():
        assert f'PackageVersion: "{VERSION}"\n' in file.read_text(), file

    for file in [path for path in dist.rglob("*") if path.suffix in (".rb", ".nix", ".yaml")]:
        assert "{{" not in file.read_text(), f"{file} has a place that was not filled in"


def test_a_formula_for_one_system_says_so():
    out = work / "one-system"
    archive = work / archive_name(NATIVE)
    archive.write_text("")
    run(sys.executable, PACK, "manifests", VERSION, "https://example.org/v", out, f"{NATIVE}={archive}")
    formula = (out / "homebrew/kode-ls.rb").read_text()
    assert "depends_on :linux\n" in formula and f'url "https://example.org/v/{archive.name}"' in formula, formula
    assert not (out / "scoop").exists() and not (out / "winget").exists(), "manifests without a program for Windows"


def test_the_metadata_of_cargo_binstall_leads_to_the_archives():
    metadata = json.loads(run("cargo", "metadata", "--locked", "--no-deps", "--format-version", "1", cwd=ROOT).stdout)
    [package] = [one for one in metadata["packages"] if one["name"] == "kode-ls"]
    assert package["repository"] == REPOSITORY, package["repository"]
    common = package["metadata"]["binstall"]
    for triple in programs():
        fields = {**common, **common["overrides"].get(triple, {})}
        values = {"repo": REPOSITORY, "version": VERSION, "target": triple, "bin": "kode-ls", "name": "kode-ls"}
        values["binary-ext"] = ".exe" if triple == WINDOWS else ""
        fill = lambda text: re.sub(r"\{ ([a-z-]+) \}", lambda name: values[name[1]], text)
        assert fill(fields["pkg-url"]) == f"{BASE}/{archive_name(triple)}", fill(fields["pkg-url"])
        assert fields["pkg-fmt"] == ("zip" if triple == WINDOWS else "tgz"), fields
        assert fill(fields["bin-dir"]) == f"kode-ls-{VERSION}-{triple}/{program_name(triple)}", fields


def test_entries_for_registries_name_archives_of_the_release():
    release()
    made = json.loads((dist / "acp-registry/kode-ls/agent.json").read_text())
    committed = json.loads((ROOT / "editors/packaging/acp-registry/kode-ls/agent.json").read_text())
    for entry in (made, committed):
        assert entry["version"] == VERSION
        for platform, binary in entry["distribution"]["binary"].items():
            name = binary["archive"].removeprefix(f"{BASE}/")
            assert (dist / name).is_file(), f"{platform}: {name} is not in the release"
            triple = re.fullmatch(rf"kode-ls-{re.escape(VERSION)}-(.*?)(\.tar\.gz|\.zip)", name)[1]
            assert binary["cmd"] == f"./kode-ls-{VERSION}-{triple}/{program_name(triple)}", binary
    assert set(made["distribution"]["binary"]) == {
        "linux-x86_64", "linux-aarch64", "windows-x86_64", "darwin-x86_64", "darwin-aarch64"
    }  # fmt: skip
    assert {**made, "distribution": 0} == {**committed, "distribution": 0}
    for platform, binary in committed["distribution"]["binary"].items():
        assert binary == made["distribution"]["binary"][platform], platform
    mason = (ROOT / "editors/packaging/mason/package.yaml").read_text().replace('{{ version | strip_prefix "v" }}', VERSION)
    assets = re.findall(r"target: (\S+)\n +file: (\S+)\n +bin: (\S+)\n", mason)
    assert len(assets) == mason.count("- target:") > 0, mason
    for platform, name, program in assets:
        assert (dist / name).is_file(), f"{platform}: {name} is not in the release"
        triple = re.fullmatch(rf"kode-ls-{re.escape(VERSION)}-(.*?)(\.tar\.gz|\.zip)", name)[1]
        assert program == f"kode-ls-{VERSION}-{triple}/{program_name(triple)}", program


# -- judges of others ------------------------------------------------------------------------------------------------


def need(name: str) -> None:
    """Leaves the test out where this program is not on the PATH."""
    if shutil.which(name) is None:
        raise LeftOut(f"{name} is not on the PATH")


def test_ruby_reads_the_formula():
    need("ruby")
    release()
    run("ruby", "-c", dist / "homebrew/kode-ls.rb")


def test_rubocop_finds_nothing_in_the_formula():
    need("rubocop")
    release()
    # Homebrew names its files and joins its paths in a way of its own; the rest is common Ruby.
    rules = work / "rubocop.yml"
    own = ["Layout/LineLength", "Layout/SpaceAroundOperators", "Naming/FileName", "Style/FrozenStringLiteralComment"]
    lines = ["AllCops: {NewCops: enable, SuggestExtensions: false}", "Style/StringLiterals: {EnforcedStyle: double_quotes}"]
    rules.write_text("\n".join(lines + [f"{name}: {{Enabled: false}}" for name in own]))
    run("rubocop", "--config", rules, "--cache", "false", dist / "homebrew/kode-ls.rb")


def test_nix_reads_its_expressions():
    need("nix-instantiate")
    release()
    for file in [dist / "nix/kode-ls.nix", *sorted((ROOT / "server/packages/nix").glob("*.nix"))]:
        run("nix-instantiate", "--parse", file)


def test_shellcheck_finds_nothing_in_the_scripts():
    need("shellcheck")
    run("shellcheck", RELEASE, ROOT / "tests/packages/run")


def test_the_schemas_of_the_registries_accept_the_manifests():
    folder = os.environ.get("KODE_LS_SCHEMAS")
    if not folder:
        raise LeftOut("KODE_LS_SCHEMAS names no folder with the schemas of Scoop, winget and the ACP registry")
    release()
    import jsonschema
    import yaml

    schemas = {"scoop": dist / "scoop/kode-ls.json", "agent": dist / "acp-registry/kode-ls/agent.json"}
    for kind, ending in (("version", ""), ("installer", ".installer"), ("locale", ".locale.en-US")):
        schemas[f"winget.{kind}"] = dist / f"winget/kode-ls.kode-ls{ending}.yaml"
    for name, file in schemas.items():
        schema = json.loads((Path(folder) / f"{name}.json").read_text())
        value = yaml.safe_load(file.read_text()) if file.suffix == ".yaml" else json.loads(file.read_text())
        kind = jsonschema.validators.validator_for(schema)
        kind(schema, format_checker=kind.FORMAT_CHECKER).validate(value)


def main(parts: list[str]) -> int:
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    tests = [(name, test) for name, test in tests if not parts or any(part in name for part in parts)]
    passed = failed = 0
    for name, test in tests:
        title = name.removeprefix("test_").replace("_", " ")
        try:
            test()
            passed += 1
            print(f"ok    {title}", flush=True)
        except LeftOut as reason:
            left_out.append(f"{title}: {reason}")
        except Exception:
            failed += 1
            print(f"FAIL  {title}\n{traceback.format_exc()}", flush=True)
    for one in left_out:
        print(f"left out: {one}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    finally:
        shutil.rmtree(work, ignore_errors=True)
