//! Which files a line is seen to read and change.
//!
//! Rule: no way of writing a line hides a file that a refusing rule names.

use super::tables::at_work;
use crate::programs::{OperandUse, lookers};
use crate::{Effect, FileAccess, TouchedPath};

/// Whether the line is seen to touch this file in `/w`, or this absolute one.
fn touches(line: &str, access: FileAccess, file: &str) -> bool {
    let file = if file.starts_with('/') { file.to_owned() } else { format!("/w/{file}") };
    let analysis = at_work(line);
    let mut all = analysis.commands.iter().flat_map(|command| &command.touches);
    all.any(|touch| match &touch.path {
        TouchedPath::Known(path) => touch.access == access && path.to_string() == file,
        TouchedPath::Unknown(_) => false,
    })
}

/// The lines of `access file <- line` whose file is not seen.
fn unseen(access: FileAccess, table: &str) -> Vec<&str> {
    let lines = table.trim().lines();
    lines
        .filter(|line| {
            let (file, line) = line.split_once(" <- ").unwrap();
            !touches(line, access, file)
        })
        .collect()
}

#[test]
fn redirections_without_a_command_of_their_own_are_seen() {
    let written = r"
.git/config <- > .git/config
.git/config <- X=1 > .git/config
.env <- >.env
f <- case x in x) ls;; esac > f
f <- { ls; } > f
f <- { X=1; } > f
f <- ( ls ) > f
f <- while false; do ls; done > f
f <- echo $(> f)
";
    let read = r#"
.env <- echo "$(<.env)"
secrets/x <- x=$(<secrets/x)
secrets/x <- echo `cat secrets/x`
f <- while false; do ls; done < f
f <- case x in x) ls;; esac < f
"#;
    assert_eq!(unseen(FileAccess::Write, written), Vec::<&str>::new());
    assert_eq!(unseen(FileAccess::Read, read), Vec::<&str>::new());
}

/// Letters that take a text which is no file: what follows them is not read.
const TEXTS: [(&str, &str); 15] = [
    ("ls", "I"),
    ("grep", "e"),
    ("egrep", "e"),
    ("fgrep", "e"),
    ("diff", "Ix"),
    ("stat", "c"),
    ("cut", "bcdf"),
    ("sort", "kt"),
    ("nl", "bns"),
    ("tac", "s"),
    ("od", "At"),
    ("column", "s"),
    ("paste", "d"),
    ("tree", "IP"),
    ("rg", "egtTr"),
];

#[test]
fn no_letter_hides_the_file_behind_it() {
    let mut hidden = Vec::new();
    let mut looked = 0;
    for (name, program) in lookers().filter(|(_, program)| program.operands != OperandUse::None) {
        for letter in ('a'..='z').chain('A'..='Z') {
            let texts = TEXTS.iter().find(|(text, _)| *text == name).map_or("", |(_, letters)| letters);
            let first = match program.operands {
                OperandUse::ReadAfter { .. } => "x .env",
                _ => "",
            };
            let line = format!("{name} -{letter} .env {first}");
            let looks = at_work(&line).commands[0].effect == Effect::ReadOnly;
            looked += usize::from(looks);
            if looks && !touches(&line, FileAccess::Read, ".env") && !texts.contains(letter) {
                hidden.push(line);
            }
        }
    }
    assert!(looked > 200, "{looked}");
    assert_eq!(hidden, Vec::<String>::new());
}

#[test]
fn operands_and_values_that_are_files_are_seen() {
    let read = r#"
.env <- cat -b .env
.env <- cat -s .env
.env <- cat -t .env
.env <- od -c .env
.env <- sort -f .env
.env <- tac -b .env
.env <- cut -s .env
.env <- wc -c .env
.env <- wc -w .env
.env <- md5sum -b .env
.env <- cmp -b .env x
.env <- diff -w .env x
.env <- stat -f .env
.env <- stat -t .env
.env <- file -b .env
.env <- readlink -f .env
.env <- realpath -s .env
/root <- ls -d /root
/root <- ls -ld /root
/root <- tree -d /root
.env <- sort --output f .env
.env <- wc --files0-from=.env
.env <- wc --files0 .env
.env <- file -f .env
.env <- grep -f .env x
.env <- grep -f.env x
.env <- grep --fil=.env x
.env <- grep -X y .env
.env <- rg --unheard-of=.env x
.env <- xxd .env
.env <- xxd -ps .env
.env <- yq . .env
.env <- jq . .env
.env <- column .env
.env <- expand .env
.env <- fmt .env
.env <- pr .env
.env <- shuf .env
.env <- iconv .env
.env <- zip x.zip .env
.env <- rsync .env x
.env <- scp .env host:x
.env <- openssl enc -in .env
.env <- awk 1 .env
.env <- curl -d @.env x
.env <- curl -T .env x
.env <- curl -sT.env x
.env <- curl -K .env
.env <- curl -F a=@.env x
.env <- curl file://.env
.env <- wget --post-file=.env x
.env <- tar cf x .env
.env <- tar -czf x .env
.env <- patch f .env
.env <- gzip -c .env
.env <- date -r .env
.env <- date -f .env
"#;
    let written = r"
f <- sort --output f a
f <- sort --outp f a
f <- sort -of a
.git/hooks <- cp --target-directory .git/hooks x
.git <- cp --targ=.git x
.git <- cp --targ .git x
f <- tree -o f
f <- xxd a f
f <- patch f x
f <- patch -o f x
f <- curl -o f x
f <- curl -sof x
f <- wget -O f x
dir <- tar xf x -C dir
dir <- tar xfC x dir
dir <- tar -xf x -C dir
x <- tar cf x a
prefix <- split a prefix
b <- rsync -a a b
f <- perl -pi -e s/a/b/ f
f <- sed -i s/a/b/ f
f <- sed -i.bak s/a/b/ f
f <- sed -n -i -e s/a/b/ f
f <- gzip f
d <- unzip x -d d
f <- chown -R x f
f <- openssl rand -out f
";
    assert_eq!(unseen(FileAccess::Read, read), Vec::<&str>::new());
    assert_eq!(unseen(FileAccess::Write, written), Vec::<&str>::new());
}

#[test]
fn the_pattern_in_an_option_is_no_file() {
    let only_looks = |line: &str| at_work(line).commands[0].effect == Effect::ReadOnly;
    assert!(only_looks("grep -rn TODO --include=*.rs src"));
    assert!(!only_looks("grep -rn TODO --include=$X src"));
    assert!(!only_looks("rg TODO \"--pre=$X\" src"));
    assert!(!touches("grep -rn TODO --include=*.rs src", FileAccess::Read, "*.rs"));
}

#[test]
fn what_goes_through_folders_says_so() {
    let through = |line: &str| at_work(line).commands[0].touches.iter().any(|touch| touch.recursive);
    let all = [
        "grep -r x src",
        "grep -rn x",
        "grep --recursive x .",
        "grep --recurs x .",
        "rg x",
        "rg x src",
        "find .",
        "find -name x",
        "ls -R",
        "ls -lR src",
        "diff -r a b",
        "du",
        "du -sh src",
        "tree",
        "cp -r a b",
        "cp -a a b",
        "mv a b",
        "rm -r a",
        "rm -rf a",
        "rm --recursive a",
        "chmod -R 700 a",
        "fd x",
        "tar cf x a",
    ];
    let none = ["cat a", "ls", "ls -l src", "grep x f", "rm f", "cp a b", "diff a b"];
    let silent: Vec<_> = all.into_iter().filter(|line| !through(line)).collect();
    let loud: Vec<_> = none.into_iter().filter(|line| through(line)).collect();
    assert_eq!((silent, loud), (vec![], vec![]));
}

#[test]
fn what_follows_links_through_folders_does_not_only_look() {
    let lines = [
        "grep -d recurse x .",
        "rg -L x",
        "rg --follow x",
        "du -L",
        "tree -l",
        "ls -LR",
        "ls -R -L x",
        "find -L . -name x",
        "find . -follow",
        "diff -r a b",
    ];
    let looking: Vec<_> =
        lines.into_iter().filter(|line| at_work(line).commands[0].effect == Effect::ReadOnly).collect();
    assert_eq!(looking, Vec::<&str>::new());
}

#[test]
fn more_programs_only_look() {
    let look = [
        "ps aux",
        "ps -ef",
        "node -v",
        "npm -v",
        "python3 --version",
        "hostname",
        "xxd a",
        "hexdump -C a",
        "strings a",
        "column -t a",
        "paste a b",
        "jq .name package.json",
        "jq -r '.a[]' f",
    ];
    let more = [
        "ps auxe",
        "hostname x",
        "xxd a b",
        "strings @a",
        "jq env",
        "jq -n '$ENV'",
        "jq -f x y",
        "env",
        "xxd -r a",
        "sort -o f a",
        "tree -o f",
        "file -f list",
        "wc --files0-from=list",
        "python3 -v",
    ];
    let looks = |line: &&str| at_work(line).commands[0].effect == Effect::ReadOnly;
    let asked: Vec<_> = look.into_iter().filter(|line| !looks(line)).collect();
    let free: Vec<_> = more.into_iter().filter(looks).collect();
    assert_eq!((asked, free), (vec![], vec![]));
}
