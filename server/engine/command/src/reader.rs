//! Scripts read into commands and what joins them, by a reader of our own.
//!
//! Rule: a construct outside the small language of words, operators, groups, conditions and loops is a problem, and
//! reading continues after it, so that later commands are still found.

use super::lexer::{self, RawWord, ends_word, quoted_body, word};

pub(super) use super::script::{
    Compound, Continuation, RawCommand, Redirect, ScriptNode, ScriptProblem, ShellScript, WordRole, WordSpan,
};

/// How deep groups may nest; deeper ones are read as if they were flat.
const MAX_DEPTH: usize = 64;

/// How long the name of a here-document's end may be.
const MAX_DELIMITER: usize = 64;

/// Reads a script.
pub(super) fn read(text: &str) -> ShellScript {
    let mut reader = ScriptReader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        depth: 0,
        pending: Vec::new(),
        script: ShellScript::default(),
    };
    loop {
        let mut body = reader.list(&[]);
        reader.script.body.append(&mut body);
        if reader.at >= reader.bytes.len() {
            break;
        }
        reader.problem(reader.at, "this is not a plain command");
        reader.at += reader.text[reader.at..].chars().next().map_or(1, char::len_utf8);
    }
    if !reader.pending.is_empty() {
        reader.problem(0, "a here-document is missing");
    }
    reader.script.spans.sort_unstable();
    reader.script
}

struct PendingDocument {
    delimiter: String,
    quoted: bool,
    tabs: bool,
    document: usize,
}

struct ScriptReader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    pending: Vec<PendingDocument>,
    script: ShellScript,
}

const CLOSERS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "}", "esac"];
const UNREAD: [&str; 5] = ["case", "select", "function", "coproc", "[["];

impl ScriptReader<'_> {
    fn problem(&mut self, start: usize, reason: &'static str) {
        let end = self.at.max(start);
        self.script.problems.push(ScriptProblem { start, end, reason, opaque: false });
    }

    fn starts(&self, operator: &str) -> bool {
        self.bytes[self.at.min(self.bytes.len())..].starts_with(operator.as_bytes())
    }

    fn take(&mut self, operator: &str) -> bool {
        let found = self.starts(operator);
        if found {
            self.at += operator.len();
        }
        found
    }

    fn blanks(&mut self) {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.bytes.get(self.at + 1) == Some(&b'\n') => self.at += 2,
                Some(b'#') => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn newline(&mut self) -> bool {
        if !self.take("\n") {
            return false;
        }
        for pending in std::mem::take(&mut self.pending) {
            self.document(&pending);
        }
        true
    }

    fn empty_lines(&mut self) {
        self.blanks();
        while self.newline() {
            self.blanks();
        }
    }

    fn document(&mut self, pending: &PendingDocument) {
        let start = self.at;
        let mut body = String::new();
        let mut closed = false;
        while self.at < self.bytes.len() && !closed {
            let rest = &self.text[self.at..];
            let length = rest.find('\n').unwrap_or(rest.len());
            let line = if pending.tabs { rest[..length].trim_start_matches('\t') } else { &rest[..length] };
            self.at = (self.at + length + 1).min(self.bytes.len());
            closed = line == pending.delimiter;
            if !closed {
                body.push_str(line);
                body.push('\n');
            }
        }
        if !closed {
            self.problem(start, "a here-document has no end");
        }
        if !pending.quoted && body.contains(['$', '`', '\\']) {
            self.problem(start, "a here-document whose delimiter is not quoted expands");
            self.script.scripts.append(&mut quoted_body(&body).scripts);
        }
        if let Some(document) = self.script.documents.get_mut(pending.document) {
            *document = body;
        }
    }

    /// The unquoted word here, if it could be a reserved one.
    fn keyword(&self) -> &str {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let length = rest.iter().position(|byte| ends_word(*byte)).unwrap_or(rest.len());
        self.text.get(self.at..self.at + length).unwrap_or_default()
    }

    fn list(&mut self, closers: &[&str]) -> Vec<(ScriptNode, Continuation)> {
        let mut nodes = Vec::new();
        loop {
            self.empty_lines();
            if self.at >= self.bytes.len() || self.starts(")") || closers.contains(&self.keyword()) {
                return nodes;
            }
            let before = self.at;
            let node = self.pipeline();
            self.blanks();
            let next = if self.take("&&") {
                Continuation::OnSuccess
            } else if self.take("||") {
                Continuation::OnFailure
            } else if self.take(";") {
                if self.starts(";") || self.starts("&") {
                    self.problem(before, "this is not a plain command");
                }
                Continuation::Always
            } else if self.take("&") {
                Continuation::Background
            } else {
                let _ = self.newline();
                Continuation::Always
            };
            nodes.push((node, next));
            if self.at == before {
                return nodes;
            }
        }
    }

    fn pipeline(&mut self) -> ScriptNode {
        let mut negated = false;
        while self.keyword() == "!" {
            negated = !negated;
            self.at += 1;
            self.blanks();
        }
        let mut elements = vec![self.command()];
        loop {
            self.blanks();
            let piped = !self.starts("||") && (self.take("|&") || self.take("|"));
            if !piped {
                break;
            }
            self.empty_lines();
            elements.push(self.command());
        }
        match elements.len() {
            1 if !negated => elements.remove(0),
            _ => ScriptNode::Pipeline { negated, elements },
        }
    }

    fn command(&mut self) -> ScriptNode {
        let start = self.at;
        if self.starts("(") {
            if self.starts("((") {
                self.problem(start, lexer::ARITHMETIC);
            }
            self.at += 1;
            return self.nested(start, Compound::Subshell, &[], ")");
        }
        let keyword = self.keyword().to_owned();
        if let Some(test) = self.file_test() {
            return ScriptNode::Command(test);
        }
        match keyword.as_str() {
            "{" => {
                self.at += 1;
                self.nested(start, Compound::Group, &["}"], "}")
            }
            "if" => self.sections(start, &["then", "elif", "else"], "fi"),
            "while" | "until" => self.sections(start, &["do"], "done"),
            "for" => {
                self.for_head(start);
                self.sections(start, &[], "done")
            }
            _ if UNREAD.contains(&keyword.as_str()) || CLOSERS.contains(&keyword.as_str()) => {
                self.at += keyword.len();
                self.problem(start, "this shell construct is not looked into");
                self.blanks();
                ScriptNode::Command(self.simple())
            }
            _ => ScriptNode::Command(self.simple()),
        }
    }

    /// Takes `[[ -f x ]]`, which says the same as `[ -f x ]` when what it asks about is plain text.
    fn file_test(&mut self) -> Option<RawCommand> {
        const ASKED: [&str; 8] = ["-d", "-e", "-f", "-r", "-s", "-w", "-x", "-L"];
        if !self.starts("[[ ") {
            return None;
        }
        let start = self.at;
        let mut words = vec![word(self.text, start)];
        for _ in 0..3 {
            let end = words.last()?.end;
            let blanks = self.bytes[end..].iter().take_while(|byte| **byte == b' ').count();
            words.push(word(self.text, end + blanks));
        }
        let [open, asked, file, close] = words.as_mut_slice() else { return None };
        let plain = ASKED.contains(&asked.source.as_str())
            && !file.source.is_empty()
            && !file.source.starts_with(['-', '!'])
            && !file.expands
            && file.problems.is_empty()
            && file.texts.is_empty()
            && close.source == "]]";
        if !plain {
            return None;
        }
        let end = close.end;
        (open.text, open.source, open.end) = ("[".to_owned(), "[".to_owned(), start + 1);
        (close.text, close.source, close.start) = ("]".to_owned(), "]".to_owned(), end - 1);
        open.expands = false;
        open.open = false;
        self.script.stand_ins.push((start, "[ ".to_owned()));
        self.script.stand_ins.push((end - 2, " ]".to_owned()));
        for (at, word) in words.iter().enumerate() {
            self.accept(word, if at == 0 { WordRole::Name } else { WordRole::Argument });
        }
        Some(RawCommand { start, end, words, ..RawCommand::default() })
    }

    fn for_head(&mut self, start: usize) {
        self.at += "for".len();
        self.blanks();
        let name = self.keyword().to_owned();
        self.at += name.len();
        if name.is_empty() || !is_variable(&name) || steers(&name) {
            self.problem(start, "this loop is not looked into");
        }
        self.empty_lines();
        if self.keyword() == "in" {
            self.at += 2;
            loop {
                self.blanks();
                let value = word(self.text, self.at);
                if value.end == self.at {
                    break;
                }
                self.accept(&value, WordRole::Argument);
            }
        }
        self.blanks();
        let _ = self.take(";");
        self.empty_lines();
        if self.keyword() == "do" {
            self.at += 2;
        } else {
            self.problem(start, "this loop is not looked into");
        }
    }

    /// Lists between keywords, up to the keyword that ends them all.
    fn sections(&mut self, start: usize, between: &[&str], last: &str) -> ScriptNode {
        let keyword = self.keyword().to_owned();
        if matches!(keyword.as_str(), "if" | "while" | "until") {
            self.at += keyword.len();
        }
        let closers: Vec<&str> = between.iter().copied().chain([last]).collect();
        let mut body = Vec::new();
        if self.enter(start) {
            loop {
                body.append(&mut self.list(&closers));
                let keyword = self.keyword().to_owned();
                if !between.contains(&keyword.as_str()) {
                    break;
                }
                self.at += keyword.len();
            }
            self.depth -= 1;
            if self.keyword() == last {
                self.at += last.len();
            } else {
                self.problem(start, lexer::UNCLOSED);
            }
        }
        self.compound(Compound::Maybe, body)
    }

    fn nested(&mut self, start: usize, kind: Compound, closers: &[&str], last: &str) -> ScriptNode {
        let mut body = Vec::new();
        if self.enter(start) {
            body = self.list(closers);
            self.depth -= 1;
            if !self.take(last) {
                self.problem(start, lexer::UNCLOSED);
            }
        }
        self.compound(kind, body)
    }

    fn enter(&mut self, start: usize) -> bool {
        let room = self.depth < MAX_DEPTH;
        if room {
            self.depth += 1;
        } else {
            let end = self.at;
            let reason = "the line nests too deep";
            self.script.problems.push(ScriptProblem { start, end, reason, opaque: true });
        }
        room
    }

    fn compound(&mut self, kind: Compound, body: Vec<(ScriptNode, Continuation)>) -> ScriptNode {
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            if !self.redirect(&mut redirects) {
                break;
            }
        }
        ScriptNode::Compound { kind, body, redirects }
    }

    fn simple(&mut self) -> RawCommand {
        let mut command = RawCommand { start: self.at, end: self.at, ..RawCommand::default() };
        loop {
            self.blanks();
            if self.redirect(&mut command.redirects) {
                continue;
            }
            if self.starts("(") && !command.words.is_empty() {
                self.function(&command);
                break;
            }
            let found = word(self.text, self.at);
            if found.end == self.at {
                break;
            }
            command.end = found.end;
            let assigns = command.words.is_empty() && is_assignment(&found);
            match (assigns, command.words.is_empty()) {
                (true, _) => self.accept(&found, WordRole::Argument),
                (false, true) => self.accept(&found, WordRole::Name),
                (false, false) => self.accept_argument(&found),
            }
            if assigns { command.assignments.push(found) } else { command.words.push(found) }
        }
        command
    }

    fn function(&mut self, command: &RawCommand) {
        self.problem(command.start, "a function changes what later commands mean");
        self.script.functions.extend(command.words.first().map(|name| name.text.clone()));
        self.at += 1;
        self.blanks();
        let _ = self.take(")");
    }

    fn accept(&mut self, word: &RawWord, part: WordRole) {
        self.at = word.end;
        self.script.spans.push(WordSpan { start: word.start, end: word.end, part });
        let plain = (!word.plain.is_empty()).then_some(&lexer::SUBSTITUTION);
        for reason in word.problems.iter().chain(plain) {
            let (start, end) = (word.start, word.end);
            self.script.problems.push(ScriptProblem { start, end, reason, opaque: false });
        }
        for (start, end) in &word.texts {
            self.script.scripts.push("cat".to_owned());
            self.script.stand_ins.push((*start, "x".repeat(end - start)));
        }
        self.script.scripts.extend(word.scripts.iter().cloned());
    }

    /// Takes an argument of a command: its plain substitutions are judged with the command.
    fn accept_argument(&mut self, word: &RawWord) {
        if word.plain.len() != word.scripts.len() {
            self.accept(word, WordRole::Argument);
            return;
        }
        self.accept(&RawWord { scripts: Vec::new(), plain: Vec::new(), ..word.clone() }, WordRole::Argument);
        for plain in &word.plain {
            self.script.stand_ins.push((plain.start, "x".repeat(plain.end - plain.start)));
        }
        if word.source == "-" {
            self.script.stand_ins.push((word.start, "x".to_owned()));
        }
    }

    /// Takes a redirection if one is here.
    fn redirect(&mut self, redirects: &mut Vec<Redirect>) -> bool {
        let start = self.at;
        let digits = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let operator = self.at + digits;
        if self.starts("&>") {
            self.at += if self.starts("&>>") { 3 } else { 2 };
            self.target(Redirect::Write, redirects);
            return true;
        }
        let process = self.bytes.get(operator + 1) == Some(&b'(');
        if !matches!(self.bytes.get(operator), Some(b'<' | b'>')) || process {
            return false;
        }
        self.at = operator;
        if self.take("<<<") {
            self.target(|_| Redirect::Text, redirects);
        } else if self.take("<<") {
            self.here_document(start, redirects);
        } else if self.take("<&") {
            self.duplicate(start, false, redirects);
        } else if self.take(">&") {
            self.duplicate(start, digits == 0, redirects);
        } else if self.take("<>") || self.take(">>") || self.take(">|") || self.take(">") {
            self.target(Redirect::Write, redirects);
        } else {
            self.at += 1;
            self.target(Redirect::Read, redirects);
        }
        true
    }

    fn target(&mut self, made: impl FnOnce(RawWord) -> Redirect, redirects: &mut Vec<Redirect>) {
        self.blanks();
        let file = word(self.text, self.at);
        if file.end == self.at {
            self.problem(self.at, "a redirection names no file");
            return;
        }
        self.accept(&file, WordRole::Target);
        let redirect = made(file.clone());
        if !matches!(redirect, Redirect::Text) && (file.expands || file.text.is_empty()) {
            self.problem(file.start, "a redirection does not say plainly which file it means");
        }
        if file.text.starts_with("/dev/tcp") || file.text.starts_with("/dev/udp") {
            self.problem(file.start, "a redirection opens a network connection");
        }
        redirects.push(redirect);
    }

    fn duplicate(&mut self, start: usize, may_be_file: bool, redirects: &mut Vec<Redirect>) {
        self.blanks();
        let source = word(self.text, self.at);
        let number = source.source.strip_suffix('-').unwrap_or(&source.source);
        if !source.source.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
            self.at = source.end;
            return;
        }
        if may_be_file {
            self.target(Redirect::Write, redirects);
            return;
        }
        self.at = source.end;
        self.problem(start, "a redirection does not say plainly which file it means");
    }

    fn here_document(&mut self, start: usize, redirects: &mut Vec<Redirect>) {
        let tabs = self.take("-");
        self.blanks();
        let delimiter = word(self.text, self.at);
        self.at = delimiter.end;
        let plain = delimiter.text.bytes().all(is_plain) && delimiter.text.len() <= MAX_DELIMITER;
        if delimiter.expands || !delimiter.problems.is_empty() || delimiter.text.is_empty() || !plain {
            self.problem(start, "the end of a here-document is not plainly named");
        }
        let document = self.script.documents.len();
        self.script.documents.push(String::new());
        self.pending.push(PendingDocument {
            delimiter: delimiter.text,
            quoted: delimiter.quoted,
            tabs,
            document,
        });
        redirects.push(Redirect::Document(document));
    }
}

fn is_plain(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// Whether a text could name a variable.
pub(super) fn is_variable(text: &str) -> bool {
    text.bytes().all(is_plain) && text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

/// Whether a variable steers the shell itself or the programs it starts.
fn steers(name: &str) -> bool {
    name.bytes().all(|byte| !byte.is_ascii_lowercase()) && name.len() > 1
}

/// Whether a word sets a variable.
pub(super) fn is_assignment(word: &RawWord) -> bool {
    let Some((name, _)) = word.source.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').map_or(name, |(array, _)| array);
    is_variable(name)
}
