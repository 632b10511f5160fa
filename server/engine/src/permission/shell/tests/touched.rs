//! Which files a line is seen to read and change.
//!
//! Rule: no way of writing a line hides a file that a refusing rule names.

use super::tables::at_work;
use crate::permission::shell::{Access, TouchedPath};

/// Whether the line is seen to touch this file in `/w`, or this absolute one.
fn touches(line: &str, access: Access, file: &str) -> bool {
    let file = if file.starts_with('/') { file.to_owned() } else { format!("/w/{file}") };
    let analysis = at_work(line);
    let mut all = analysis.commands.iter().flat_map(|command| &command.touches);
    all.any(|touch| match &touch.path {
        TouchedPath::Known(path) => touch.access == access && path.to_string() == file,
        TouchedPath::Unknown(_) => false,
    })
}

/// The lines of `access file <- line` whose file is not seen.
fn unseen<'a>(access: Access, table: &'a str) -> Vec<&'a str> {
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
    assert_eq!(unseen(Access::Write, written), Vec::<&str>::new());
    assert_eq!(unseen(Access::Read, read), Vec::<&str>::new());
}
