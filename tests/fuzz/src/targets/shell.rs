//! Command lines that a model may write, and whether rules cover them.
//!
//! Rule: a line is allowed only when every simple command of it is: a line that is covered stays covered when it is run
//! after itself, and is not when a command without permission follows it. One that begins with a backslash may be asked for
//! then: the grammar of the second reader takes a line break before one for something else, and both have to agree.

use kode_engine::base::paths::AbsPath;
use kode_engine::command::{CommandPattern, analyse};

use crate::input::Input;

pub(crate) fn run(bytes: &[u8]) {
    let line = Input::new(bytes).text();
    let folder = AbsPath::new("/work").expect("an absolute path");
    let patterns: Vec<CommandPattern> = ["echo *", "ls", "git status"]
        .into_iter()
        .map(|pattern| pattern.parse().expect("a pattern"))
        .collect();
    if analyse(&line, &folder).is_all_of(&patterns) {
        let longer = format!("{line}\n{line}");
        assert!(
            line.trim_start().starts_with('\\') || analyse(&longer, &folder).is_all_of(&patterns),
            "{longer:?}"
        );
        let worse = format!("{line}\nnobody-allowed-this");
        assert!(!analyse(&worse, &folder).is_all_of(&patterns), "{worse:?}");
    }
}
