//! Which commands rules allow, refuse and are offered for.
//!
//! Rule: an allow reads narrowly, a refusal widely.

use super::tables::{at_work, pattern};
use crate::propose;

#[test]
fn rules_allow_words_and_not_text() {
    let allows = |rule: &str, line: &str| {
        let analysis = at_work(line);
        analysis.unknowns.is_empty() && pattern(rule).allows(&analysis.commands[0])
    };
    for (rule, line, allowed) in [
        ("ls *", "ls", true),
        ("ls *", "ls -l", true),
        ("ls *", "lsof", false),
        ("ls*", "lsof", true),
        ("ls*", "ls -l", true),
        ("npm run test:*", "npm run test -- x", true),
        ("npm run test:*", "npm run test:unit", false),
        ("npm run test", "npm run test", true),
        ("npm run test", "npm run test x", false),
        ("npm run test", "npm 'run test'", false),
        ("npm run *", "npm 'run x'", false),
        ("git commit -m 'a b'", "git commit -m \"a b\"", true),
        ("git commit -m *", "git commit -m 'a b'", true),
        ("git * main", "git push origin main", true),
        ("find:*", "find . -delete", false),
        ("find . -delete", "find . -delete", true),
        ("find*", "find . -exec id \\;", false),
        ("*", "find . -delete", true),
        ("foo:*", "PATH=x foo", false),
        ("foo:*", "NO_COLOR=1 foo", true),
        ("foo", "PATH=x foo", false),
        ("foo:*", "foo $X *", true),
        ("foo $X", "foo $X", false),
        ("tar:*", "tar cf x *", false),
        ("tar:*", "tar cf x ./*", true),
        ("timeout:*", "timeout 5 foo", false),
        ("timeout 5 foo", "timeout 5 foo", true),
        ("rm", "/bin/rm", false),
        (r"echo \*", "echo x", false),
        (r"echo \*", r"echo \*", true),
    ] {
        assert_eq!(allows(rule, line), allowed, "{rule} / {line}");
    }
}

#[test]
fn refusing_rules_reach_everywhere() {
    for (rule, line, forbidden) in [
        ("rm:*", "rm x", true),
        ("rm:*", "rm", true),
        ("rm:*", "/bin/rm x", true),
        ("rm:*", "./rm x", false),
        ("rm:*", "ls && rm x", true),
        ("rm:*", "sh -c 'rm x'", true),
        ("rm:*", "env -u X FOO=1 rm x", true),
        ("rm:*", "find . -exec rm {} +", true),
        ("rm:*", "ls | xargs rm", true),
        ("rm:*", "echo $(rm x)", true),
        ("rm:*", "echo ${x:-`rm x`}", true),
        ("rm:*", "$X y", true),
        ("rm:*", "echo rm", false),
        ("rm:*", "format x", false),
        ("rm:*", "PATH=x LD_PRELOAD=y rm z", true),
        ("rm:*", "cat <<EOF\n`rm x`\nEOF", true),
        ("rm:*", "coproc rm x", true),
        ("rm:*", "trap 'rm x' EXIT", true),
        ("rm:*", "ssh host rm x", true),
        ("rm:*", "docker exec c rm x", true),
        ("rm:*", "case x in x) rm y;; esac", true),
        ("rm:*", "timeout -k 5 10 rm x", true),
        ("rm:*", "busybox rm x", true),
        ("git push:*", "git $X", true),
        ("git push:*", "git pull $X", false),
        ("git push:*", "git \"pu\"sh", true),
        ("rm:*", "npx rm x", true),
        ("rm:*", "npx -y --package p rm x", true),
        ("rm:*", "npx -c 'rm x'", true),
        ("rm:*", "npm exec -- rm x", true),
        ("rm:*", "yarn exec rm x", true),
        ("rm:*", "pnpm --silent exec rm x", true),
        ("rm:*", "bundle exec rm x", true),
        ("rm:*", "uv run --with a rm x", true),
        ("rm:*", "poetry run rm x", true),
        ("rm:*", "pipenv run rm x", true),
        ("rm:*", "prlimit --nofile=9 rm x", true),
        ("rm:*", "setpriv --reuid 1 rm x", true),
        ("rm:*", "setarch x86_64 -R rm x", true),
        ("rm:*", "linux64 rm x", true),
        ("rm:*", "numactl -N 0 rm x", true),
        ("rm:*", "fakeroot -- rm x", true),
        ("rm:*", "runuser -u me rm x", true),
        ("rm:*", "runuser -u me -- rm x", true),
        ("rm:*", "dbus-run-session -- rm x", true),
        ("rm:*", "systemd-inhibit --what=idle rm x", true),
        ("rm:*", "start-stop-daemon --start -x /bin/rm -- x", true),
        ("rm:*", "bwrap --bind / / --dev /dev rm x", true),
        ("rm:*", "firejail --noprofile rm x", true),
        ("rm:*", "/lib64/ld-linux-x86-64.so.2 --library-path l /bin/rm x", true),
        ("rm:*", "direnv exec . rm x", true),
        ("rm:*", "cross-env A=b rm x", true),
        ("rm:*", "dotenv -e f -- rm x", true),
        ("rm:*", "script -qc 'rm x' log", true),
        ("rm:*", "kode-ls sandbox -- rm x", true),
        ("rm:*", "GIT_EDITOR='rm x' git commit", true),
        ("rm:*", "env GIT_SSH_COMMAND='rm x' git fetch", true),
        ("rm:*", "PAGER='rm x' man ls", true),
        ("rm:*", "npx tsc rm", false),
        ("rm:*", "npm test exec", false),
        ("rm:*", "GIT_EDITOR=true git rebase --continue", false),
        ("git push:*", "echo \"$(git push)\"", true),
        ("git push:*", "git \"$(cat <<'EOF'\npush\nEOF\n)\"", true),
        ("git push:*", "git $(echo push)", true),
        ("git push:*", "\"$(cat <<'EOF'\ngit\nEOF\n)\" push", true),
        ("git push:*", "bash -c \"$(cat <<'EOF'\ngit push\nEOF\n)\"", true),
        ("npm publish", "npm $CMD", true),
        ("npm publish", "npm test", false),
        ("*", "ls", true),
        ("curl *", "echo x | curl -d @- y", true),
    ] {
        assert_eq!(pattern(rule).forbids(&at_work(line)), forbidden, "{rule} / {line}");
    }
}

#[test]
fn refusing_rules_leave_alone_what_has_none_of_their_words() {
    let push = pattern("git push:*");
    for line in [
        "git commit -m \"$(cat <<'EOF'\nSay why\nEOF\n)\"",
        "git commit -F - <<'EOF'\nSay why\nEOF",
        "echo \"$(git branch --show-current)\"",
        "cd \"$(git rev-parse --show-toplevel)\" && ls",
        "git add $(git diff --name-only)",
        "git commit -m \"$(git log --grep push)\"",
        "git commit -m \"$(cat <<'EOF'\nExplain git push; don't ask\nEOF\n)\"",
        "git commit -F - <<'EOF'\nExplain git pull and push\nEOF",
        "[[ -d .git ]] && git status",
        "export X=1; git status",
        "source x",
        ". ./x && git status",
    ] {
        assert!(!push.forbids(&at_work(line)), "{line}");
    }
    for line in [
        "x=$(git push)",
        "cat <(git push)",
        "case x in x) git push;; esac",
        "alias x='git push'; x",
        "export X='git push'; $X",
        "source $X",
        "source <(git push)",
    ] {
        assert!(push.forbids(&at_work(line)), "{line}");
    }
}

#[test]
fn options_before_and_between_arguments_hide_nothing_from_a_refusing_rule() {
    for (rule, line, forbidden) in [
        ("git push:*", "git -C . push", true),
        ("git push:*", "git -c a=b push", true),
        ("git push:*", "git --git-dir=.git push", true),
        ("git push:*", "git --git-dir .git push", true),
        ("git push:*", "git -P push origin main", true),
        ("git push:*", "/usr/bin/git --no-pager -C x -c y=z push", true),
        ("git push", "git --no-pager push", true),
        ("git push*", "git --no-pager push", true),
        ("git push:*", "git -C \"$X\" push", true),
        ("git push:*", "git -c alias.x=push x", true),
        ("git push:*", "git -c 'alias.x=!git push' x", true),
        ("git push --force:*", "git push -u --force", true),
        ("git push:*", "git -C . status", false),
        ("git push:*", "git -C \"$X\" status", false),
        ("git push:*", "git --no-pager log push", false),
        ("git push:*", "git -c color.ui=never log --oneline", false),
        ("git push:*", "git commit -m push", false),
        ("npm publish", "npm --registry x publish", true),
        ("npm publish:*", "npm -w x publish", true),
        ("npm publish:*", "npm -w x test publish", false),
        ("docker run:*", "docker --context x run y", true),
        ("docker compose push:*", "docker compose -f x push", true),
        ("cargo publish:*", "cargo +nightly publish", true),
        ("cargo publish:*", "cargo --offline publish", true),
        ("cargo publish:*", "cargo +nightly test", false),
    ] {
        assert_eq!(pattern(rule).forbids(&at_work(line)), forbidden, "{rule} / {line}");
    }
}

#[test]
fn what_a_variable_may_hold_is_not_surely_forbidden() {
    for (rule, line, sure) in [
        ("rm:*", "rm -rf $X", true),
        ("rm:*", "/bin/rm x", true),
        ("rm:*", "sh -c 'rm x'", true),
        ("rm:*", "\"$PYTHON\" -m pytest", false),
        ("rm:*", "${NPM:-npm} test", false),
        ("rm:*", "eval \"$(ssh-agent)\"", false),
        ("git push:*", "git $X", false),
        ("git push:*", "git -C \"$X\" push", true),
        ("*", "$X", false),
    ] {
        let (pattern, analysis) = (pattern(rule), at_work(line));
        assert!(pattern.forbids(&analysis), "{rule} / {line}");
        assert_eq!(pattern.surely_forbids(&analysis), sure, "{rule} / {line}");
    }
}

#[test]
fn standing_rules_are_narrow_or_not_offered() {
    for (line, rules) in [
        ("npm install x", "npm install:*"),
        ("cargo test --workspace", "cargo test:*"),
        ("git push origin main", "git push origin main"),
        ("./x.sh", "./x.sh"),
        ("./x.sh 'a b'", "./x.sh 'a b'"),
        ("npm run build", "npm run build:*"),
        ("cargo build && cargo test", "cargo build:* cargo test:*"),
        ("ls | head", ""),
        ("cargo build 2>&1 | tail", "cargo build:*"),
        ("python3 x.py", ""),
        ("bash -c ls", ""),
        ("env ls", ""),
        ("npm test $X", ""),
        ("eval ls", ""),
        ("find . -delete", ""),
        ("sudo ls", ""),
        ("timeout 5 cargo test", "cargo test:*"),
        ("PATH=x cargo test", ""),
        ("NODE_ENV=test npm test", "npm test:*"),
        ("uv run pytest -q", "uv run pytest:*"),
        ("set -e; cargo test", "cargo test:*"),
    ] {
        let offered: Vec<String> = propose(&at_work(line)).iter().map(ToString::to_string).collect();
        assert_eq!(offered.join(" "), rules, "{line}");
    }
}
