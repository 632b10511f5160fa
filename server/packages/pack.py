"""Packs the programs that `server/release` has: archives, npm packages, manifests for package managers, checksums.

    pack.py triples                           the triples that have packages, one a line
    pack.py names TRIPLE                      the file name of the program, and the ending of its archive
    pack.py check TRIPLE FILE                 fails unless FILE is a program for TRIPLE
    pack.py helper TRIPLE FILE                the sandbox helper beside this program; nothing where the system has no sandbox
    pack.py platforms TRIPLE...               the platforms of VS Code that these serve: PLATFORM TRIPLE, one a line
    pack.py missing SYSTEM TRIPLE...          the platforms that these leave without a package, each with the next step
    pack.py archive FOLDER FILE               FOLDER as a .tar.gz or .zip
    pack.py zip FILE MEMBER...                these files, without folders
    pack.py npm VERSION OUT TRIPLE=FOLDER...  folders for `npm pack`; FOLDER is the content of the archive
    pack.py manifests VERSION BASE DIST TRIPLE=ARCHIVE...
    pack.py sums FOLDER                       writes SHA256SUMS over all files of FOLDER
    pack.py verify FOLDER                     compares the files with SHA256SUMS

Rule: Python's standard library alone, because the tools of Linux and macOS differ. The same input gives the same
bytes: names are sorted, owners are left out, and the time of each file is SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import struct
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DESCRIPTION = "A coding agent that is a language server"


# The program that is nothing but the helper of the sandbox. It lies beside the program, which is the helper without it.
HELPER = "kode-ls-helper"


@dataclass(frozen=True)
class Target:
    """The packages of one triple."""

    # (file format, machine) as `file_kind` returns it.
    kind: tuple[str, str]
    vscode: tuple[str, ...]
    npm: str
    os: str
    cpu: str
    acp: str
    nix: str | None
    program: str = "kode-ls"
    ending: str = ".tar.gz"
    libc: str | None = None


# In the order of preference: the first triple of a release that serves a platform gets it. A static program (musl) starts
# on every distribution, and one for glibc only where the library is as new as that of the build.
TARGETS = {
    "x86_64-unknown-linux-musl": Target(
        ("ELF", "x86-64"), ("linux-x64", "alpine-x64"), "linux-x64", "linux", "x64", "linux-x86_64", "x86_64-linux"
    ),
    "x86_64-unknown-linux-gnu": Target(
        ("ELF", "x86-64"), ("linux-x64",), "linux-x64", "linux", "x64", "linux-x86_64", None, libc="glibc"
    ),
    "aarch64-unknown-linux-musl": Target(
        ("ELF", "arm64"), ("linux-arm64", "alpine-arm64"), "linux-arm64", "linux", "arm64", "linux-aarch64", "aarch64-linux"
    ),
    "aarch64-unknown-linux-gnu": Target(
        ("ELF", "arm64"), ("linux-arm64",), "linux-arm64", "linux", "arm64", "linux-aarch64", None, libc="glibc"
    ),
    "x86_64-pc-windows-gnu": Target(
        ("PE", "x86-64"), ("win32-x64",), "win32-x64", "win32", "x64", "windows-x86_64", None, "kode-ls.exe", ".zip"
    ),
    "aarch64-apple-darwin": Target(
        ("Mach-O", "arm64"), ("darwin-arm64",), "darwin-arm64", "darwin", "arm64", "darwin-aarch64", "aarch64-darwin"
    ),
    "x86_64-apple-darwin": Target(
        ("Mach-O", "x86-64"), ("darwin-x64",), "darwin-x64", "darwin", "x64", "darwin-x86_64", "x86_64-darwin"
    ),
}


def fail(text: str) -> None:
    sys.exit(f"server/packages/pack.py: {text}")


def target(triple: str) -> Target:
    if triple not in TARGETS:
        fail(f"no package is made for {triple}. The triples are: {' '.join(TARGETS)}.")
    return TARGETS[triple]


def in_order(triples: list[str]) -> list[str]:
    """The triples in the order of preference."""
    for triple in triples:
        target(triple)
    return [triple for triple in TARGETS if triple in triples]


def pairs(arguments: list[str]) -> dict[str, Path]:
    """TRIPLE=PATH, by triple, in the order of preference."""
    given = dict(argument.split("=", 1) for argument in arguments)
    return {triple: Path(given[triple]) for triple in in_order(list(given))}


def chosen(triples: list[str], key: str) -> dict[str, str]:
    """The triple that serves each platform, by the platform's name in the field `key`."""
    found: dict[str, str] = {}
    for triple in in_order(triples):
        value = getattr(target(triple), key)
        for name in value if isinstance(value, tuple) else [value]:
            if name is not None:
                found.setdefault(name, triple)
    return found


# -- programs --------------------------------------------------------------------------------------------------------


def file_kind(file: Path) -> tuple[str, str, bool]:
    """The format of a program, its machine, and whether it is started by a dynamic loader of ELF."""
    with file.open("rb") as stream:
        head = stream.read(4096)
        if head[:4] == b"\x7fELF":
            machine = {62: "x86-64", 183: "arm64"}.get(struct.unpack_from("<H", head, 18)[0], "another machine")
            at, (size, count) = struct.unpack_from("<Q", head, 32)[0], struct.unpack_from("<HH", head, 54)
            stream.seek(at)
            headers = stream.read(size * count)
            kinds = [struct.unpack_from("<I", headers, size * number)[0] for number in range(count)]
            return "ELF", machine, 3 in kinds
    if head[:2] == b"MZ":
        at = struct.unpack_from("<I", head, 0x3C)[0]
        if head[at : at + 4] == b"PE\0\0":
            machine = {0x8664: "x86-64", 0xAA64: "arm64"}
            return "PE", machine.get(struct.unpack_from("<H", head, at + 4)[0], "another machine"), False
    if head[:4] == b"\xcf\xfa\xed\xfe":
        machine = {0x01000007: "x86-64", 0x0100000C: "arm64"}
        return "Mach-O", machine.get(struct.unpack_from("<I", head, 4)[0], "another machine"), False
    return "no program", "any machine", False


def check(triple: str, file: str) -> None:
    if not Path(file).is_file():
        fail(f"there is no file {file}, which was named as the program for {triple}")
    form, machine, dynamic = file_kind(Path(file))
    wanted = target(triple).kind
    if (form, machine) != wanted:
        fail(f"{file} cannot be the program for {triple}: it is {form} for {machine}, not {wanted[0]} for {wanted[1]}")
    if triple.endswith("-musl") and dynamic:
        fail(f"{file} cannot be the program for {triple}: it needs a dynamic loader, and a program for musl is static")


def helper_of(triple: str, program: Path) -> Path | None:
    """The sandbox helper beside a program; none on systems without a sandbox."""
    return None if target(triple).os == "win32" else program.with_name(HELPER)


def helper(triple: str, file: str) -> None:
    found = helper_of(triple, Path(file))
    if found is None:
        return
    if not found.is_file():
        fail(f"there is no {HELPER} beside {file}; `server/release --target {triple} --program-only` builds both")
    check(triple, str(found))
    print(found)


def missing(system: str, triples: list[str]) -> None:
    """Prints one line for each platform of VS Code without a package."""
    served = chosen(triples, "vscode")
    for platform, triple in chosen(list(TARGETS), "vscode").items():
        if platform in served:
            continue
        if triple.endswith("-apple-darwin") and system != "Darwin":
            step = (
                f"is linked on a Mac. There: `server/release --target {triple} --program-only`; "
                f"here, with the file it names: `--program {triple}=FILE`"
            )
        elif triple.endswith("-apple-darwin") or system == "Linux":
            step = f"`server/release --target {triple}` builds it"
        else:
            step = f"is linked on Linux (x86_64). There: `server/release --target {triple}`"
        print(f"left out: {platform} ({triple}): {step}")


# -- archives --------------------------------------------------------------------------------------------------------


# Level 9 makes a program 0.8 % smaller, and takes three times as long.
LEVEL = 6


def epoch() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def mode_of(path: Path) -> int:
    return 0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644


def members(folder: Path) -> Iterator[Path]:
    yield folder
    yield from sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix())


def tar(folder: Path, file: Path) -> None:
    with file.open("wb") as raw, gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for path in members(folder):
                entry = tarfile.TarInfo(path.relative_to(folder.parent).as_posix())
                entry.mode, entry.mtime = mode_of(path), epoch()
                if path.is_dir():
                    entry.type = tarfile.DIRTYPE
                    archive.addfile(entry)
                    continue
                entry.size = path.stat().st_size
                with path.open("rb") as content:
                    archive.addfile(entry, content)


def zip_files(files: list[tuple[Path, str]], file: Path) -> None:
    """Writes a zip with these files, each with its name in the archive."""
    # The format has no time before 1980.
    at = time.gmtime(max(epoch(), 315532800))[:6]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
        for path, name in files:
            entry = zipfile.ZipInfo(name, at)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = (0o100000 | mode_of(path)) << 16
            with path.open("rb") as content, archive.open(entry, "w") as out:
                shutil.copyfileobj(content, out, 1 << 20)


def archive(folder: str, file: str) -> None:
    source, out = Path(folder), Path(file)
    if file.endswith(".zip"):
        files = [path for path in members(source) if path.is_file()]
        zip_files([(path, path.relative_to(source.parent).as_posix()) for path in files], out)
    else:
        tar(source, out)


# -- npm -------------------------------------------------------------------------------------------------------------


def write_json(file: Path, value: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def repository() -> str:
    return re.search(r'^repository = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]


def npm(version: str, out: str, contents: dict[str, Path]) -> None:
    """Writes the folders `kode-ls` and `PLATFORM` for each platform of these contents."""
    common = json.loads((HERE / "npm/package.json").read_text())
    common["version"] = version
    common["repository"] = {"type": "git", "url": f"git+{repository()}.git"}
    common["homepage"] = repository()
    served = chosen(list(contents), "npm")
    folder = Path(out) / "kode-ls"
    shutil.copytree(HERE / "npm/bin", folder / "bin")
    shutil.copy(HERE / "npm/README.md", folder)
    optional = {f"@kode-ls/{platform}": version for platform in served}
    write_json(folder / "package.json", {**common, "optionalDependencies": optional})
    for platform, triple in served.items():
        made, folder = target(triple), Path(out) / platform
        (folder / "bin").mkdir(parents=True)
        program = contents[triple] / made.program
        for file in (program, helper_of(triple, program)):
            if file is not None:
                shutil.copy(file, folder / "bin")
        shutil.copy(contents[triple] / "THIRD-PARTY-LICENSES.txt", folder)
        fields = {key: value for key, value in common.items() if key not in ("bin", "keywords", "engines")}
        fields |= {
            "name": f"@kode-ls/{platform}",
            "description": f"The program of kode-ls for {platform} ({triple}); the package kode-ls starts it.",
            "os": [made.os],
            "cpu": [made.cpu],
            **({"libc": [made.libc]} if made.libc else {}),
            # Yarn would keep it in an archive, from which nothing can be started.
            "preferUnplugged": True,
            "files": ["bin", "LICENSE-*", "THIRD-PARTY-LICENSES.txt"],
        }
        write_json(folder / "package.json", fields)
        (folder / "README.md").write_text(
            f"# @kode-ls/{platform}\n\nThe program of [kode-ls]({repository()}) for {platform} ({triple}). Install the package\n"
            "`kode-ls`, which depends on this one where it fits.\n"
        )
    for folder in Path(out).iterdir():
        for text in ("LICENSE-MIT", "LICENSE-APACHE"):
            shutil.copy(ROOT / text, folder)


# -- manifests of package managers -----------------------------------------------------------------------------------


def digest(file: Path) -> hashlib._Hash:
    with file.open("rb") as stream:
        return hashlib.sha256(stream.read())


def filled(template: str, values: dict[str, str]) -> str:
    """The text of a template below this folder with its {{name}}s replaced; each has to have a value."""
    return re.sub(r"\{\{(\w+)\}\}", lambda name: values[name[1]], (HERE / template).read_text())


class Manifests:
    """The manifests of one release, in folders of `dist` by package manager."""

    def __init__(self, version: str, base: str, dist: Path, archives: dict[str, Path]) -> None:
        self.version, self.dist = version, dist
        self.addresses = {triple: f"{base.rstrip('/')}/{file.name}" for triple, file in archives.items()}
        self.digests = {triple: digest(file) for triple, file in archives.items()}
        self.values = {"version": version, "repository": repository(), "description": DESCRIPTION}

    def write(self, name: str, text: str) -> None:
        file = self.dist / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def homebrew(self) -> None:
        served = chosen(list(self.addresses), "nix")
        systems = []
        for system, name in (("darwin", "on_macos"), ("linux", "on_linux")):
            machines = []
            for machine, block in (("aarch64", "on_arm"), ("x86_64", "on_intel")):
                triple = served.get(f"{machine}-{system}")
                if triple is None and system == "linux" and f"{machine}-unknown-linux-gnu" in self.addresses:
                    triple = f"{machine}-unknown-linux-gnu"
                if triple:
                    lines = [f'url "{self.addresses[triple]}"', f'sha256 "{self.digests[triple].hexdigest()}"']
                    machines.append((block, lines))
            if machines:
                systems.append((name, machines))
        if not systems:
            return
        text = []
        if len(systems) == 1:
            text += [f"  depends_on :{systems[0][0].removeprefix('on_')}", ""]
        for name, machines in systems:
            text.append(f"  {name} do")
            for block, lines in machines:
                text += [f"    {block} do", *(f"      {line}" for line in lines), "    end"]
            text += ["  end", ""]
        self.write("homebrew/kode-ls.rb", filled("homebrew/kode-ls.rb.in", self.values | {"platforms": "\n".join(text)}))

    def nix(self) -> None:
        sources = []
        for system, triple in sorted(chosen(list(self.addresses), "nix").items()):
            integrity = base64.b64encode(self.digests[triple].digest()).decode()
            sources += [f"    {system} = {{", f'      url = "{self.addresses[triple]}";', f'      hash = "sha256-{integrity}";', "    };"]
        if sources:
            self.write("nix/kode-ls.nix", filled("nix/binary.nix.in", self.values | {"sources": "\n".join(sources)}))

    def windows(self) -> None:
        triple = "x86_64-pc-windows-gnu"
        if triple not in self.addresses:
            return
        address, checksum = self.addresses[triple], self.digests[triple].hexdigest()
        folder = f"kode-ls-{self.version}-{triple}"
        scoop = json.loads((HERE / "scoop/kode-ls.json").read_text())
        scoop |= {"version": self.version, "description": DESCRIPTION, "homepage": repository()}
        scoop["architecture"] = {"64bit": {"url": address, "hash": checksum, "extract_dir": folder}}
        scoop["checkver"] = {"github": repository()}
        following = {"url": address.replace(self.version, "$version"), "extract_dir": folder.replace(self.version, "$version")}
        scoop["autoupdate"] = {"architecture": {"64bit": following}}
        write_json(self.dist / "scoop/kode-ls.json", scoop)
        values = self.values | {"url": address, "sha256": checksum.upper(), "folder": folder}
        for kind in ("", ".installer", ".locale.en-US"):
            self.write(f"winget/kode-ls.kode-ls{kind}.yaml", filled(f"winget/kode-ls.kode-ls{kind}.yaml.in", values))

    def acp_registry(self) -> None:
        source = ROOT / "editors/packaging/acp-registry/kode-ls"
        entry = json.loads((source / "agent.json").read_text())
        entry["version"] = self.version
        binaries = {}
        for platform, triple in sorted(chosen(list(self.addresses), "acp").items()):
            command = f"./kode-ls-{self.version}-{triple}/{target(triple).program}"
            binaries[platform] = {"archive": self.addresses[triple], "cmd": command, "args": ["acp"]}
        entry["distribution"] = {"binary": binaries}
        write_json(self.dist / "acp-registry/kode-ls/agent.json", entry)
        shutil.copy(source / "icon.svg", self.dist / "acp-registry/kode-ls")


def manifests(version: str, base: str, dist: str, archives: dict[str, Path]) -> None:
    if not re.fullmatch(r"(https|http|file)://\S+", base):
        fail(f"`{base}` is no address; --base-url takes one such as https://example.org/v{version}")
    made = Manifests(version, base, Path(dist), archives)
    made.homebrew()
    made.nix()
    made.windows()
    made.acp_registry()


# -- checksums -------------------------------------------------------------------------------------------------------


def listed(folder: Path) -> list[Path]:
    return [path for path in members(folder) if path.is_file() and path.name != "SHA256SUMS"]


def sums(folder: str) -> None:
    lines = [f"{digest(path).hexdigest()}  {path.relative_to(folder).as_posix()}\n" for path in listed(Path(folder))]
    (Path(folder) / "SHA256SUMS").write_text("".join(lines))


def verify(folder: str) -> None:
    lines = (Path(folder) / "SHA256SUMS").read_text().splitlines()
    wrong = [line[66:] for line in lines if digest(Path(folder) / line[66:]).hexdigest() != line[:64]]
    wrong += sorted({path.relative_to(folder).as_posix() for path in listed(Path(folder))} - {line[66:] for line in lines})
    if wrong:
        fail(f"not as SHA256SUMS says: {', '.join(wrong)}")


def main(command: str = "", *arguments: str) -> None:
    if command == "triples":
        print("\n".join(TARGETS))
    elif command == "names" and len(arguments) == 1:
        print(target(arguments[0]).program, target(arguments[0]).ending)
    elif command == "check" and len(arguments) == 2:
        check(*arguments)
    elif command == "helper" and len(arguments) == 2:
        helper(*arguments)
    elif command == "platforms":
        for platform, triple in chosen(list(arguments), "vscode").items():
            print(platform, triple)
    elif command == "missing" and arguments:
        missing(arguments[0], list(arguments[1:]))
    elif command == "archive" and len(arguments) == 2:
        archive(*arguments)
    elif command == "zip" and len(arguments) > 1:
        zip_files([(Path(file), Path(file).name) for file in arguments[1:]], Path(arguments[0]))
    elif command == "npm" and len(arguments) > 2:
        npm(arguments[0], arguments[1], pairs(list(arguments[2:])))
    elif command == "manifests" and len(arguments) > 3:
        manifests(arguments[0], arguments[1], arguments[2], pairs(list(arguments[3:])))
    elif command == "sums" and len(arguments) == 1:
        sums(*arguments)
    elif command == "verify" and len(arguments) == 1:
        verify(*arguments)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
