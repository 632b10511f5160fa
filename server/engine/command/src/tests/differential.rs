//! A comparison with the real shell: generated lines run in a folder of their own, with nothing on the path but
//! stand-ins that note how they were called.
//!
//! Rule: of a line that counts as understood, the shell runs only the commands found, in the folders found, and
//! writes only the files found. `KODE_LS_DIFFERENTIAL` sets how many lines are tried.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Analysis, CommandWord, FileAccess, TouchedPath, analyse};
use kode_base::paths::{AbsPath, real_path};

const LINES: usize = 1_500;
const STAND_INS: [&str; 12] =
    ["p", "q", "ls", "cat", "rm", "git", "env", "timeout", "find", "xargs", "sh", "nohup"];
const STAND_IN: &str = "#!/bin/bash\nprintf '%s\\0' \"$PWD\" \"${0##*/}\" \"$@\" $'\\1' >> \"$CALLS/$$\"\n\
                       case ${0##*/}$# in cat0) while IFS= read -r l; do printf '%s\\n' \"$l\"; done;; esac\n";

const WORDS: [&str; 52] = [
    "a",
    "b",
    "-l",
    "a",
    "f1",
    "d",
    "'a b'",
    "\"a b\"",
    "a\\ b",
    "''",
    "\"\"",
    "a'b'\"c\"",
    "\\a",
    "\\$X",
    "'$X'",
    "\"$X\"",
    "$X",
    "${X}",
    "$Y",
    "*",
    "f*",
    "?1",
    "[f]1",
    "{a,b}",
    "{1..3}",
    "{}",
    "~",
    "~/a",
    "x=~/a",
    "x=$X",
    "a=b",
    "#",
    "a#b",
    "!",
    "!=",
    "\\\n",
    "1",
    "22",
    "$",
    "a$",
    "\"a\\\"b\"",
    "\"$X'\"",
    "'a\"b'",
    "\"\\$(p)\"",
    "'`p`'",
    "--",
    "]",
    "if",
    "do",
    "é",
    "-c",
    "\\;",
];
const TRICKS: [&str; 40] = [
    "$(ls a)",
    "\"$(cat 'b c')\"",
    "a\"$(ls)\"b",
    "\"$(ls # )\"",
    "\"$(cat <<'E'\nit's `q` $(p))\n\nE\n)\"",
    "\"$(cat <<'E'\nE \nE\n) $(ls)\"",
    "$(p)",
    "`p`",
    "\"$(p a)\"",
    "\"`p`\"",
    "${X:-`p`}",
    "${X:-$(p)}",
    "${X/`p`/}",
    "${X@P}",
    "${!X}",
    "$((1))",
    "$((a[$(p)]))",
    "<(p)",
    ">(p)",
    "$'p'",
    "$\"p\"",
    "~+",
    "$[1]",
    "${X:+$(p)}",
    "\"${Y:-`p`}\"",
    "${#X}",
    "${X#`p`}",
    "a[$(p)]=1",
    "X=$(p)",
    "X+=a",
    "\r",
    "\u{a0}",
    "\u{3000}",
    "\x0b",
    "+(p)",
    "\"${Y-$(p)}\"",
    "$(p",
    "'",
    "\"",
    "`",
];
const JOINS: [&str; 16] = [
    "; ", " && ", " || ", " | ", " & ", "\n", ";", "&&", "|", " |& ", "\n\n", "&", "; # p\n", " # p\n", "||",
    " \\\n&& ",
];
const REDIRECTS: [&str; 20] = [
    "> o1",
    ">o2",
    ">> o1",
    "2> o3",
    "2>&1",
    "&> o4",
    ">& o5",
    ">| o1",
    "< f1",
    "<f1",
    "<<< 'a b'",
    "<<< $X",
    "&>> o1",
    "1>&2",
    "<> o6",
    "> 'o 7'",
    "> $X",
    "> \"o8\"",
    "> o*",
    "> d/o9",
];
const WHOLE: [&str; 69] = [
    "cat - <<'E'\n$(p)\nE\nls -",
    "set -e; p; false; q",
    "set -euo pipefail; p | q; ls $Y",
    "[[ -f f1 ]] && p",
    "[[ -d f1 ]] || p",
    "ls\\\n -l\\\n a && p",
    "cd d && p \"$(ls)\"",
    "cat <<'E'\n$(p)\n`q`\nE\nls",
    "cat <<E\na\nE\nls",
    "cat <<E\n$(p)\nE",
    "cat <<E\n`p`\nE",
    "cat <<-E\n\ta\n\tE\nls",
    "cat <<E | ls\nb\nE\np",
    "cat <<\\E\n$(p)\nE\nls",
    "cat <<E\n\\E\nE\nls",
    "cat <<'E F'\nE F\nls",
    "cat <<E; ls\nE\np",
    "cat <<A <<B\n1\nA\n2\nB\nls",
    "cat << E > o1\nx\nE",
    "p 'a\nb' <<E\nE\nq",
    "ls \"<<E\"\np",
    "cat <<E\"F\"\np\nEF\nq",
    "for i in a b; do p $i; done",
    "for i in a 'b c'; do p \"$i\"; done",
    "for i in f*; do p; done",
    "if p; then q; else ls; fi",
    "if ! p; then q; elif ls; then cat; fi",
    "while false; do p; done",
    "until p; do q; done",
    "(p; q) > o1",
    "{ p; q; } > o1",
    "(cd d && p) && q",
    "cd d && p",
    "cd d; p",
    "cd nowhere; p",
    "cd nowhere || p",
    "cd d || p; q",
    "cd d && cd .. && p",
    "! cd d && p",
    "cd d | p; q",
    "cd d & p",
    "{ cd d && p; } && q",
    "(cd d; p); q",
    "if cd d; then p; fi; q",
    "for i in 1 2; do p; cd d; done",
    "time p",
    "time -p p",
    "! p",
    "! ! p",
    "time cd d && p",
    "coproc p",
    "eval p",
    "eval 'p; q'",
    "trap p EXIT",
    "X=p; $X",
    "[[ a[$(p)] -eq 0 ]]",
    "test -v 'a[$(p)]'",
    "[ -v 'a[$(p)]' ]",
    "printf -v 'a[$(p)]' x",
    "case a in a) p;; esac",
    "sq() { p; }; sq",
    "function sq { p; }; sq",
    "alias sq=p; sq",
    "export X=p; $X",
    "read -r x <<< p; $x",
    "[ a = b ] || p",
    "test ! -f f1 && p",
    "echo p | p",
    "PS4='$(p)'; set -x; ls",
];

/// A generator of numbers that gives the same ones each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.roll(from.len())]
    }

    fn command(&mut self) -> String {
        let mut line = String::new();
        if self.roll(12) == 0 {
            line.push_str(["LANG=C ", "A=b ", "A='b c' ", "A=$X "][self.roll(4)]);
        }
        if self.roll(8) == 0 {
            line.push_str(
                ["command ", "env ", "timeout 5 ", "nohup ", "time ", "xargs ", "sh -c "][self.roll(7)],
            );
        }
        line.push_str(match self.roll(30) {
            0 => "echo",
            1 => "printf '%s'",
            2 => "\"p\"",
            3 => "p\\\n",
            4 => "$X",
            5 => "'q'",
            6 => "./tool",
            _ => self.pick(&STAND_INS),
        });
        for _ in 0..self.roll(5) {
            line.push_str(if self.roll(20) == 0 { "" } else { " " });
            let trick = self.roll(14) == 0;
            line.push_str(if trick { self.pick(&TRICKS) } else { self.pick(&WORDS) });
        }
        while self.roll(4) == 0 {
            line.push(' ');
            line.push_str(self.pick(&REDIRECTS));
            if self.roll(4) == 0 {
                line.push(' ');
                line.push_str(self.pick(&WORDS));
            }
        }
        line
    }

    fn line(&mut self, depth: usize) -> String {
        let mut line = match self.roll(10) {
            0 if depth > 0 => format!("({})", self.line(depth - 1)),
            1 if depth > 0 => format!("{{ {}; }}", self.line(depth - 1)),
            2 if depth > 0 => format!("if {}; then {}; fi", self.line(depth - 1), self.line(depth - 1)),
            3 if depth > 0 => self.pick(&WHOLE).to_owned(),
            _ => self.command(),
        };
        while depth > 0 && self.roll(3) == 0 {
            line.push_str(self.pick(&JOINS));
            line.push_str(&self.line(depth - 1));
        }
        line
    }
}

/// Lines that could define a function that calls itself are left out: the machine shall live.
fn is_safe_to_run(line: &str) -> bool {
    let squeezed: String = line.chars().filter(|c| !c.is_whitespace() && *c != '\\').collect();
    WHOLE.contains(&line)
        || !(squeezed.contains("()") || squeezed.contains("while") || squeezed.contains("until"))
}

struct Ground {
    _keep: tempfile::TempDir,
    root: PathBuf,
    work: PathBuf,
    lines: usize,
}

fn ground() -> Ground {
    let keep = tempfile::tempdir().unwrap();
    let root = real_path(keep.path()).unwrap();
    let programs = root.join("programs");
    fs::create_dir_all(&programs).unwrap();
    for name in STAND_INS {
        stand_in(&programs.join(name));
    }
    let work = root.join("up0/above/work");
    Ground { _keep: keep, root, work, lines: 0 }
}

fn stand_in(path: &Path) {
    fs::write(path, STAND_IN).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Ground {
    /// Takes a fresh folder for the next line: what an earlier one left in the background may still write.
    fn next(&mut self) -> AbsPath {
        let _ = fs::remove_dir_all(self.root.join(format!("up{}", self.lines)));
        self.lines += 1;
        self.work = self.root.join(format!("up{}/above/work", self.lines));
        AbsPath::new(&self.work).unwrap()
    }

    /// Runs a line; gives the calls (folder, program, arguments) and the files that are new or changed.
    fn run(&self, line: &str) -> (Vec<Vec<String>>, Vec<PathBuf>) {
        // A file for each process: those of a pipeline note their calls at the same time.
        let calls = self.root.join(format!("calls{}", self.lines));
        fs::create_dir_all(&calls).unwrap();
        fs::create_dir_all(self.work.join("d")).unwrap();
        fs::write(self.work.join("f1"), "old").unwrap();
        stand_in(&self.work.join("tool"));
        let _ = Command::new("/usr/bin/timeout")
            .args(["-k", "1", "5", "/bin/bash", "--norc", "--noprofile", "-c", line])
            .current_dir(&self.work)
            .env_clear()
            .env("PATH", self.root.join("programs"))
            .env("HOME", self.root.join(format!("up{}", self.lines)))
            .env("CALLS", &calls)
            .env("X", "p q")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let mut notes = Vec::new();
        files(&calls, &mut notes);
        let noted: String =
            notes.iter().map(|note| String::from_utf8_lossy(&fs::read(note).unwrap()).into_owned()).collect();
        let _ = fs::remove_dir_all(&calls);
        let calls = noted
            .split("\u{1}\0")
            .filter(|call| !call.is_empty())
            .map(|call| call.split_terminator('\0').map(str::to_owned).collect())
            .collect();
        let mut written = Vec::new();
        files(&self.root.join(format!("up{}", self.lines)), &mut written);
        written.retain(|path| match path.strip_prefix(&self.work) {
            Ok(path) if path == Path::new("tool") => false,
            Ok(path) if path == Path::new("f1") => fs::read(self.work.join("f1")).unwrap() != b"old",
            _ => true,
        });
        (calls, written)
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

fn fits(words: &[CommandWord], given: &[String]) -> bool {
    match words.split_first() {
        None => given.is_empty(),
        Some((word, rest)) if word.literal => given.first() == Some(&word.text) && fits(rest, &given[1..]),
        Some((_, rest)) => (0..=given.len()).any(|taken| fits(rest, &given[taken..])),
    }
}

fn unexpected(analysis: &Analysis, calls: &[Vec<String>], written: &[PathBuf]) -> Option<String> {
    for call in calls {
        let expected = analysis.commands.iter().any(|command| {
            let mut argv = command.argv.clone();
            argv[0].text = argv[0].text.rsplit('/').next().unwrap().to_owned();
            let here = command.directory.as_ref().is_none_or(|folder| folder.to_string() == call[0]);
            here && fits(&argv, &call[1..])
        });
        if !expected {
            return Some(format!("ran {call:?}"));
        }
    }
    let touches = || analysis.commands.iter().flat_map(|command| &command.touches);
    for path in written {
        let expected = touches().any(|touch| match (&touch.access, &touch.path) {
            (FileAccess::Write, TouchedPath::Known(known)) => path.starts_with(known.as_path()),
            (FileAccess::Write, TouchedPath::Unknown(_)) => true,
            (FileAccess::Read, _) => false,
        });
        if !expected {
            return Some(format!("wrote {path:?}"));
        }
    }
    None
}

#[test]
fn bash_does_nothing_that_an_understood_line_does_not_say() {
    if !Path::new("/usr/bin/timeout").exists() || !Path::new("/bin/bash").exists() {
        eprintln!("no bash here to compare with");
        return;
    }
    let lines = std::env::var("KODE_LS_DIFFERENTIAL").ok().and_then(|n| n.parse().ok()).unwrap_or(LINES);
    let seed =
        std::env::var("KODE_LS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0x2545_F491_4F6C_DD1D);
    let threads: Vec<_> =
        (0..2_u64).map(|half| std::thread::spawn(move || compare(seed ^ (half << 17), lines / 2))).collect();
    let mut understood = 0;
    let mut ran = 0;
    let mut wrong = Vec::new();
    for thread in threads {
        let (some, calls, bad) = thread.join().unwrap();
        understood += some;
        ran += calls;
        wrong.extend(bad);
    }
    eprintln!("{lines} lines, {understood} understood, {ran} calls");
    assert_eq!(wrong, Vec::<String>::new());
    // The comparison is worth something only while much is understood and much runs.
    assert!(understood * 4 > lines && ran * 2 > lines, "{understood} understood, {ran} calls");
}

fn compare(seed: u64, lines: usize) -> (usize, usize, Vec<String>) {
    let mut ground = ground();
    let mut dice = Dice(seed);
    let (mut understood, mut ran, mut wrong) = (0, 0, Vec::new());
    let mut fixed = WHOLE.iter().map(|line| (*line).to_owned());
    for _ in 0..lines {
        let line = fixed.next().unwrap_or_else(|| dice.line(2));
        let analysis = analyse(&line, &ground.next());
        if !is_safe_to_run(&line) || !analysis.unknowns.is_empty() {
            continue;
        }
        understood += 1;
        let (calls, written) = ground.run(&line);
        ran += calls.len();
        if let Some(what) = unexpected(&analysis, &calls, &written) {
            wrong.push(format!("{line:?} {what}"));
        }
    }
    (understood, ran, wrong)
}
