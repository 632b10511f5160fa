//! The files that git reads by its operands, and its read-only calls.
//!
//! Rule: no way to name a file to git goes unseen, and nothing that executes or writes counts as looking.

use crate::{Analysis, Effect, FileAccess, SimpleCommand, TouchedPath, analyse};
use kode_base::paths::AbsPath;

fn at_work(line: &str) -> Analysis {
    analyse(line, &AbsPath::new("/w").unwrap())
}

fn git(line: &str) -> SimpleCommand {
    at_work(line).commands.into_iter().find(|command| command.argv[0].text == "git").unwrap()
}

/// The files that git reads in a line; `?` are those that the line does not tell.
fn reads(line: &str) -> Vec<String> {
    let touches = git(line).touches.into_iter().filter(|touch| touch.access == FileAccess::Read);
    let name = |path| match path {
        TouchedPath::Known(path) => path.to_string(),
        TouchedPath::Unknown(_) => "?".to_owned(),
    };
    touches.map(|touch| name(touch.path)).collect()
}

fn only_looks(line: &str) -> bool {
    git(line).effect == Effect::ReadOnlyGit
}

#[test]
fn files_that_git_shows_are_seen() {
    for (line, file) in [
        ("git diff /dev/null .env", "/w/.env"),
        ("git diff /etc/passwd /etc/group", "/etc/group"),
        ("cd src && git diff /dev/null .env", "/w/src/.env"),
        ("cd src && git diff /dev/null ../.env", "?"),
        ("git diff -U /dev/null .env", "/w/.env"),
        ("git diff -U .env", "/w/.env"),
        ("git diff -M .env", "/w/.env"),
        ("git diff -S -G .env", "/w/.env"),
        ("git diff --no-index a .env", "/w/.env"),
        ("git blame --abbrev .env", "/w/.env"),
        ("git blame --contents=.env a", "/w/.env"),
        ("git blame .env", "/w/.env"),
        ("git blame -e .env", "/w/.env"),
        ("git show HEAD:.env", "/w/.env"),
        ("git show HEAD:src/.env", "/w/src/.env"),
        ("git show ':0:.env'", "/w/.env"),
        ("git show ':(top).env'", "?"),
        ("git show 'HEAD^{/a:b}:.env'", "/w/.env"),
        ("cd src && git show HEAD:private/x", "?"),
        ("git cat-file -p HEAD:.env", "/w/.env"),
        ("git cat-file -p 4b825dc642cb", "?"),
        ("git cat-file blob 4b825dc642cb", "?"),
        ("git cat-file -p '4b825dc642cb^{blob}'", "?"),
        ("git grep . -- .env", "/w/.env"),
        ("git grep -e . .env", "/w/.env"),
        ("git grep -ne . .env", "/w/.env"),
        ("git grep -A 3 . .env", "/w/.env"),
        ("git grep . HEAD -- '*env'", "?"),
        ("git grep .", "/w"),
        ("git log -p -- .env", "/w/.env"),
        ("git log -p .env", "/w/.env"),
        ("git log -L1,5:.env", "/w/.env"),
        ("git log -L 1,5:.env", "/w/.env"),
        ("git log -p -- '.en?'", "?"),
        ("git log -p -- .en*", "?"),
        ("git log -p -- '\\.env'", "?"),
        ("git log -p -- \"$X\"", "?"),
        ("git --no-pager -P log -p -- .env", "/w/.env"),
        ("git stash show -p -- .env", "/w/.env"),
        ("git ls-files /etc", "/etc"),
        ("git ls-files '/etc/*.conf'", "/etc"),
        ("git -C sub diff /dev/null .env", "/w/sub/.env"),
        ("git -C sub diff /dev/null ../.env", "?"),
        ("git -C /etc status", "/etc"),
        ("git -C \"$X\" status", "?"),
        ("/usr/bin/git show HEAD:.env; git show HEAD:.env", "/w/.env"),
    ] {
        assert!(reads(line).iter().any(|read| read == file), "{line}: {:?}", reads(line));
    }
}

#[test]
fn what_prints_contents_without_naming_files_is_seen() {
    use crate::PrintedContents::{Any, Named, Nothing};
    for (line, prints) in [
        ("git show", Any),
        ("git show HEAD~2", Any),
        ("git show HEAD:src/main.rs", Named),
        ("git show HEAD:a HEAD", Any),
        ("git show HEAD -- src", Named),
        ("git show --stat", Nothing),
        ("git show --stat -p", Any),
        ("git show --name-only HEAD", Nothing),
        ("git log", Nothing),
        ("git log --oneline -n 3", Nothing),
        ("git log -p", Any),
        ("git log --patch --stat", Any),
        ("git log -3p", Any),
        ("git log -U5", Any),
        ("git log -p -- src/main.rs", Named),
        ("git -C sub --no-pager log -p", Any),
        ("git diff", Any),
        ("git diff main..HEAD", Any),
        ("git diff --stat main", Nothing),
        ("git diff -- .", Named),
        ("git diff --", Any),
        ("git stash show -p", Any),
        ("git stash list", Nothing),
        ("git grep x HEAD", Any),
        ("git archive HEAD", Any),
        ("git format-patch -1", Any),
        ("git fast-export --all", Any),
        ("git cat-file --batch", Any),
        ("git cat-file -t HEAD", Nothing),
        ("git status", Nothing),
        ("git commit -m x", Nothing),
    ] {
        assert_eq!(git(line).prints(), prints, "{line}");
    }
    assert_eq!(at_work("cat git").commands[0].prints(), Nothing);
}

#[test]
fn patterns_and_messages_are_no_files() {
    for line in [
        "git grep -n 'fn .*main'",
        "git grep -n 'fn .*main' -- src",
        "git grep -ne '/etc/.*' src",
        "git log -G 'foo.*bar' --oneline",
        "git log -S '/etc' src/main.rs",
        "git log --author 'A *' --since 2024/01/01",
        "git log --grep='a*' main..origin/main",
        "git diff HEAD~2 'HEAD^' -- src/main.rs",
        "git show HEAD:src/main.rs",
        "git show 'stash@{0}'",
        "git blame -L '/re.*/,+5' src/main.rs",
        "git ls-files '*.rs'",
        "git branch --list 'feat/*'",
        "git tag -l 'v*'",
        "git commit -m 'see /etc/x: *'",
        "git stash push -m 'see /etc/x: *'",
    ] {
        let found = reads(line);
        assert!(found.iter().all(|read| read.starts_with("/w")), "{line}: {found:?}");
    }
}

#[test]
fn looking_is_distinguished_from_doing() {
    for line in [
        "git -C sub status",
        "git -P log",
        "git --no-pager -C sub diff",
        "git check-ignore -v target",
        "git help",
        "git help log",
        "git rev-parse --show-prefix",
        "git merge-base main HEAD",
        "git describe --tags --match='v*'",
        "git shortlog -sn",
        "git ls-tree -r HEAD",
        "git config user.name",
        "git config --get user.email",
        "git reflog -n 3",
    ] {
        assert!(only_looks(line), "{line}");
    }
    for line in [
        "git config --list",
        "git config -l",
        "git config --get-all user.name",
        "git config remote.origin.url",
        "git config user.name evil",
        "git config --get http.extraheader",
        "git diff --no-index a b",
        "git diff -U --output=x",
        "git diff -M --no-index a b",
        "git grep -A -O./x foo",
        "git grep --recurse foo",
        "git blame --abbrev --contents=x a",
        "git reflog --all expire",
        "git help -w log",
        "git -c core.pager=x -C sub status",
        "git -C",
        "git",
    ] {
        assert!(!only_looks(line), "{line}");
    }
    assert_eq!(git("git -C sub status").directory.unwrap().to_string(), "/w/sub");
    assert_eq!(git("git -C a -C b status").directory.unwrap().to_string(), "/w/a/b");
    assert_eq!(git("git -C \"$X\" status").directory, None);
}

#[test]
fn no_prefix_covers_what_executes_or_writes_elsewhere() {
    for line in [
        "git rebase -qx ./x main",
        "git rebase -vi main",
        "git rebase --interactive main",
        "git rebase --inter main",
        "git rebase --ex=./x main",
        "git grep -nO./x foo",
        "git grep --open=./x foo",
        "git clone -qc core.fsmonitor=./x a",
        "git clone --conf core.fsmonitor=./x a",
        "git clone -lu ./x a b",
        "git clone 'ext::sh -c x' b",
        "git clone evil::x b",
        "git archive -vo f HEAD",
        "git archive --o=f HEAD",
        "git archive --remote=ext::x HEAD",
        "git archive --remote ./x HEAD",
        "git format-patch -o /tmp HEAD~1",
        "git format-patch -ko/tmp HEAD~1",
        "git format-patch --output-directory /tmp HEAD~1",
        "git format-patch --output-d=/tmp HEAD~1",
        "git diff --no-index a b",
        "git fetch --upload-pack ./x origin",
        "git push --receive=./x origin",
        "git send-email --sendmail-cmd=./x a",
        "git for-each-repo --config=x status",
        "git -C sub commit -m x",
        "git -c a.b=c commit -m x",
        "git commit $X",
        "git --exec-path=x commit",
    ] {
        assert!(!git(line).prefix_covered, "{line}");
    }
    for line in [
        "git commit -m 'Use std::io'",
        "git commit -qam x",
        "git -P push -u origin main",
        "git --no-pager fetch --tags --prune origin",
        "git checkout -b x/config",
        "git rebase --continue",
        "git clone --depth 1 https://example.org/x.git",
        "git grep -n --color x",
        "git diff --no-color --stat",
        "git stash push --include-untracked",
    ] {
        assert!(git(line).prefix_covered, "{line}");
    }
}
