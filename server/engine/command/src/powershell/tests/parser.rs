//! A stand-in for PowerShell's parser, for the tables of the tests beside it.
//!
//! Rule: it reads the forms of those tables and no others, and gives the tree that the documentation of PowerShell's syntax tree
//! describes. It is no judge of PowerShell: the real parser was not tried.

use kode_base::powershell::{SyntaxNode, SyntaxReading};

struct StandIn<'a> {
    text: &'a str,
    at: usize,
    nodes: Vec<SyntaxNode>,
}

/// The operators between two values.
const OPERATORS: [&str; 16] = [
    "-eq ",
    "-ne ",
    "-gt ",
    "-lt ",
    "-ge ",
    "-le ",
    "-like ",
    "-match ",
    "-notmatch ",
    "-and ",
    "-or ",
    "-f ",
    "+",
    "*",
    "-join ",
    "-replace ",
];

/// How a command reads.
pub(super) fn read(text: &str) -> SyntaxReading {
    let mut parser = StandIn { text, at: 0, nodes: Vec::new() };
    let root = parser.open("ScriptBlockAst", None);
    parser.block(root);
    assert_eq!(parser.at, text.len(), "the stand-in does not read {:?}", &text[parser.at..]);
    parser.close(root);
    SyntaxReading { nodes: Ok(parser.nodes) }
}

impl<'a> StandIn<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn open(&mut self, kind: &str, parent: Option<usize>) -> usize {
        let (kind, start) = (kind.to_owned(), self.at);
        self.nodes.push(SyntaxNode {
            kind,
            start,
            end: start,
            parent,
            value: String::new(),
            form: String::new(),
        });
        self.nodes.len() - 1
    }

    fn close(&mut self, node: usize) {
        self.nodes[node].end = self.at;
    }

    fn child(&mut self, kind: &str, parent: usize, inside: impl FnOnce(&mut Self, usize)) -> usize {
        let node = self.open(kind, Some(parent));
        inside(self, node);
        self.close(node);
        node
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn need(&mut self, token: &str) {
        assert!(self.eat(token), "{token:?} is missing at {:?}", self.rest());
    }

    fn blanks(&mut self) {
        while self.rest().starts_with([' ', '\t']) || self.rest().starts_with("`\n") {
            self.at += if self.rest().starts_with('`') { 2 } else { 1 };
        }
    }

    /// The statements up to a closing bracket.
    fn block(&mut self, parent: usize) {
        self.child("NamedBlockAst", parent, |parser, block| parser.statements(block));
    }

    fn statements(&mut self, parent: usize) {
        loop {
            while self.rest().starts_with([' ', '\t', '\n', '\r', ';']) {
                self.at += 1;
            }
            if self.rest().is_empty() || self.rest().starts_with([')', '}']) {
                return;
            }
            self.statement(parent);
        }
    }

    fn statement(&mut self, parent: usize) {
        let rest = self.rest();
        let name_length = rest
            .find(|letter: char| !letter.is_alphanumeric() && !"$:_".contains(letter))
            .unwrap_or(rest.len());
        if rest.starts_with('$') && rest[name_length..].trim_start().starts_with("= ") {
            self.child("AssignmentStatementAst", parent, |parser, node| {
                parser.primary(node);
                parser.blanks();
                parser.need("=");
                parser.blanks();
                parser.pipeline(node);
            });
            return;
        }
        match &rest[..name_length] {
            "function" => {
                self.child("FunctionDefinitionAst", parent, |parser, node| {
                    parser.at += parser.rest().find('{').unwrap_or(0);
                    parser.primary(node);
                });
            }
            "if" | "while" => {
                self.child("IfStatementAst", parent, |parser, node| {
                    parser.at += parser.rest().find('(').unwrap_or(0) + 1;
                    parser.pipeline(node);
                    parser.need(")");
                    parser.blanks();
                    parser.need("{");
                    parser.child("StatementBlockAst", node, |parser, block| parser.statements(block));
                    parser.need("}");
                });
            }
            _ => {
                let first = self.nodes.len();
                self.pipeline(parent);
                self.blanks();
                if self.rest().starts_with("&&") || self.rest().starts_with("||") {
                    self.chain(first, parent);
                }
            }
        }
    }

    /// Puts the pipeline that begins at a node into a chain with those after it.
    fn chain(&mut self, first: usize, parent: usize) {
        let start = self.nodes[first].start;
        for node in &mut self.nodes[first..] {
            node.parent = node.parent.map(|at| if at >= first { at + 1 } else { at });
        }
        let chain = SyntaxNode {
            kind: "PipelineChainAst".to_owned(),
            start,
            end: start,
            parent: Some(parent),
            value: String::new(),
            form: String::new(),
        };
        self.nodes.insert(first, chain);
        self.nodes[first + 1].parent = Some(first);
        while self.eat("&&") || self.eat("||") {
            self.blanks();
            self.pipeline(first);
            self.blanks();
        }
        self.close(first);
    }

    fn pipeline(&mut self, parent: usize) {
        let pipeline = self.child("PipelineAst", parent, |parser, node| {
            loop {
                parser.blanks();
                parser.element(node);
                parser.blanks();
                if parser.rest().starts_with("||") || !parser.eat("|") {
                    break;
                }
            }
        });
        if self.rest().starts_with('&') && !self.rest().starts_with("&&") {
            self.at += 1;
            self.nodes[pipeline].form = "Background".to_owned();
        }
    }

    fn element(&mut self, parent: usize) {
        let rest = self.rest();
        let is_call = rest.starts_with('&') || rest.starts_with(". ");
        let is_value = rest.starts_with(['\'', '"', '$', '(', '@', '[', '{', '!'])
            || rest.starts_with(|letter: char| letter.is_ascii_digit());
        if is_value || rest.starts_with("-not ") {
            self.child("CommandExpressionAst", parent, |parser, node| {
                parser.expression(node);
                parser.redirections(node);
            });
            return;
        }
        self.child("CommandAst", parent, |parser, node| {
            if is_call {
                let form = if parser.eat("&") { "Ampersand" } else { "Dot" };
                parser.at += usize::from(form == "Dot");
                parser.nodes[node].form = form.to_owned();
                parser.blanks();
            } else {
                parser.nodes[node].form = "Unknown".to_owned();
            }
            loop {
                parser.redirections(node);
                let rest = parser.rest();
                if rest.is_empty() || rest.starts_with(['\n', ';', '|', ')', '}', '&']) {
                    return;
                }
                parser.argument(node);
            }
        });
    }

    fn redirections(&mut self, parent: usize) {
        loop {
            self.blanks();
            if ["2>&1", "*>&1"].iter().any(|merge| self.rest().starts_with(merge)) {
                self.child("MergingRedirectionAst", parent, |parser, _| parser.at += 4);
                continue;
            }
            let operators = ["2>>", "2>", "*>", ">>", ">"];
            let Some(operator) = operators.iter().find(|operator| self.rest().starts_with(**operator)) else {
                return;
            };
            self.child("FileRedirectionAst", parent, |parser, node| {
                parser.at += operator.len();
                parser.blanks();
                parser.argument(node);
            });
        }
    }

    fn argument(&mut self, parent: usize) {
        let rest = self.rest();
        if rest.starts_with('-') && rest[1..].starts_with(char::is_alphabetic) {
            let node = self.open("CommandParameterAst", Some(parent));
            let end = rest
                .find(|letter: char| letter.is_whitespace() || ":;|)}".contains(letter))
                .unwrap_or(rest.len());
            self.nodes[node].value = rest[1..end].to_owned();
            self.at += end;
            if self.eat(":") {
                self.argument(node);
            }
            return self.close(node);
        }
        let first = self.nodes.len();
        self.value(parent);
        if !self.rest().starts_with(',') {
            return;
        }
        let start = self.nodes[first].start;
        for node in &mut self.nodes[first..] {
            node.parent = node.parent.map(|at| if at >= first { at + 1 } else { at });
        }
        let list = SyntaxNode {
            kind: "ArrayLiteralAst".to_owned(),
            start,
            end: start,
            parent: Some(parent),
            value: String::new(),
            form: String::new(),
        };
        self.nodes.insert(first, list);
        self.nodes[first + 1].parent = Some(first);
        while self.eat(",") {
            self.blanks();
            self.value(first);
        }
        self.close(first);
    }

    fn value(&mut self, parent: usize) {
        if self.rest().starts_with(['\'', '"', '$', '(', '{', '@', '[']) && !self.rest().starts_with("[!") {
            return self.postfix(parent);
        }
        let node = self.open("StringConstantExpressionAst", Some(parent));
        let mut value = String::new();
        let mut is_open = false;
        while let Some(letter) = self.rest().chars().next() {
            if letter.is_whitespace() || ";|(){},<>&".contains(letter) {
                break;
            }
            self.at += letter.len_utf8();
            match letter {
                '`' => {
                    let escaped = self.rest().chars().next().unwrap_or_default();
                    self.at += escaped.len_utf8();
                    value.push(escaped);
                }
                '$' => {
                    is_open = true;
                    value.push('$');
                }
                _ => value.push(letter),
            }
        }
        assert!(self.at > self.nodes[node].start, "the stand-in reads no argument at {:?}", self.rest());
        self.nodes[node].form = "BareWord".to_owned();
        if is_open {
            self.nodes[node].kind = "ExpandableStringExpressionAst".to_owned();
        } else if value.parse::<f64>().is_ok() {
            self.nodes[node].kind = "ConstantExpressionAst".to_owned();
        }
        self.nodes[node].value = value;
        self.close(node);
    }

    fn expression(&mut self, parent: usize) {
        for (token, form) in [("-not ", "Not"), ("!", "Exclaim")] {
            if self.rest().starts_with(token) {
                let node = self.child("UnaryExpressionAst", parent, |parser, node| {
                    parser.at += token.len();
                    parser.expression(node);
                });
                self.nodes[node].form = form.to_owned();
                return;
            }
        }
        let first = self.nodes.len();
        self.postfix(parent);
        self.blanks();
        let Some(operator) = OPERATORS.iter().find(|operator| self.rest().starts_with(**operator)) else {
            return;
        };
        self.wrap(first, parent, "BinaryExpressionAst");
        self.at += operator.len();
        self.blanks();
        self.expression(first);
        self.close(first);
    }

    /// Puts what begins at a node into a new one.
    fn wrap(&mut self, first: usize, parent: usize, kind: &str) {
        let start = self.nodes[first].start;
        for node in &mut self.nodes[first..] {
            node.parent = node.parent.map(|at| if at >= first { at + 1 } else { at });
        }
        let (kind, value, form) = (kind.to_owned(), String::new(), String::new());
        self.nodes.insert(first, SyntaxNode { kind, start, end: start, parent: Some(parent), value, form });
        self.nodes[first + 1].parent = Some(first);
    }

    fn postfix(&mut self, parent: usize) {
        let first = self.nodes.len();
        self.primary(parent);
        loop {
            let is_static = self.rest().starts_with("::");
            let rest = self.rest();
            if !(is_static || rest.starts_with('.') && rest[1..].starts_with(char::is_alphabetic)) {
                return;
            }
            self.wrap(first, parent, "MemberExpressionAst");
            self.at += if is_static { 2 } else { 1 };
            if is_static {
                self.nodes[first].form = "Static".to_owned();
            }
            let length =
                self.rest().find(|letter: char| !letter.is_alphanumeric()).unwrap_or(self.rest().len());
            let member = self.child("StringConstantExpressionAst", first, |parser, _| parser.at += length);
            self.nodes[member].value = self.text[self.nodes[member].start..self.nodes[member].end].to_owned();
            if self.eat("(") {
                self.nodes[first].kind = "InvokeMemberExpressionAst".to_owned();
                while !self.eat(")") {
                    self.blanks();
                    self.expression(first);
                    self.blanks();
                    self.eat(",");
                }
            }
            self.close(first);
        }
    }

    fn primary(&mut self, parent: usize) {
        let rest = self.rest();
        if rest.starts_with("@'") || rest.starts_with("@\"") {
            return self.here_string(parent);
        }
        match rest.chars().next() {
            Some('\'') => {
                let node = self.open("StringConstantExpressionAst", Some(parent));
                let end = rest[1..].find('\'').unwrap_or_else(|| panic!("no end of {rest:?}")) + 1;
                self.nodes[node].value = rest[1..end].to_owned();
                self.nodes[node].form = "SingleQuoted".to_owned();
                self.at += end + 1;
                self.close(node);
            }
            Some('"') => self.expandable(parent),
            Some('$') if rest.starts_with("$(") => {
                self.child("SubExpressionAst", parent, |parser, node| {
                    parser.at += 2;
                    parser.child("StatementBlockAst", node, |parser, block| parser.statements(block));
                    parser.need(")");
                });
            }
            Some('$') => {
                let node = self.open("VariableExpressionAst", Some(parent));
                let is_braced = rest.starts_with("${");
                let is_end = |letter: char| {
                    if is_braced {
                        letter == '}'
                    } else {
                        !letter.is_alphanumeric() && !"_:?".contains(letter)
                    }
                };
                let skipped = if is_braced { 2 } else { 1 };
                let length = rest[skipped..].find(is_end).unwrap_or(rest.len() - skipped);
                self.nodes[node].value = rest[skipped..skipped + length].to_owned();
                self.at += skipped + length + usize::from(is_braced);
                self.close(node);
            }
            Some('@') if rest.starts_with("@(") => {
                self.child("ArrayExpressionAst", parent, |parser, node| {
                    parser.at += 2;
                    parser.child("StatementBlockAst", node, |parser, block| parser.statements(block));
                    parser.need(")");
                });
            }
            Some('@') if rest.starts_with("@{") => {
                self.child("HashtableAst", parent, |parser, _| parser.at += rest.find('}').unwrap_or(0) + 1);
            }
            Some('@') => {
                let node = self.open("VariableExpressionAst", Some(parent));
                self.nodes[node].form = "Splatted".to_owned();
                self.at +=
                    1 + rest[1..].find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len() - 1);
                self.close(node);
            }
            Some('(') => {
                self.child("ParenExpressionAst", parent, |parser, node| {
                    parser.at += 1;
                    parser.pipeline(node);
                    parser.need(")");
                });
            }
            Some('{') => {
                self.child("ScriptBlockExpressionAst", parent, |parser, node| {
                    parser.at += 1;
                    parser.child("ScriptBlockAst", node, |parser, block| parser.block(block));
                    parser.need("}");
                });
            }
            Some('[') => {
                let length = rest.find(']').unwrap_or(0) + 1;
                if rest[length..].starts_with("::") {
                    self.child("TypeExpressionAst", parent, |parser, _| parser.at += length);
                } else {
                    self.child("ConvertExpressionAst", parent, |parser, node| {
                        parser.at += length;
                        parser.primary(node);
                    });
                }
            }
            Some(letter) if letter.is_ascii_digit() => {
                let length = rest
                    .find(|letter: char| !letter.is_alphanumeric() && letter != '.')
                    .unwrap_or(rest.len());
                self.child("ConstantExpressionAst", parent, |parser, _| parser.at += length);
            }
            _ => panic!("the stand-in does not read {rest:?}"),
        }
    }

    fn here_string(&mut self, parent: usize) {
        let rest = self.rest();
        let end = if rest.starts_with("@'") { "\n'@" } else { "\n\"@" };
        let length = rest.find(end).unwrap_or_else(|| panic!("no end of {rest:?}"));
        let node = self.open("StringConstantExpressionAst", Some(parent));
        self.nodes[node].value = rest[3..length].to_owned();
        self.nodes[node].form = "SingleQuotedHereString".to_owned();
        self.at += length + end.len();
        self.close(node);
    }

    fn expandable(&mut self, parent: usize) {
        let node = self.open("StringConstantExpressionAst", Some(parent));
        self.nodes[node].form = "DoubleQuoted".to_owned();
        self.at += 1;
        let mut value = String::new();
        while let Some(letter) = self.rest().chars().next() {
            match letter {
                '"' => break,
                '$' if self.rest()[1..]
                    .starts_with(|next: char| next.is_alphabetic() || next == '(' || next == '{') =>
                {
                    self.nodes[node].kind = "ExpandableStringExpressionAst".to_owned();
                    self.primary(node);
                }
                '`' => {
                    self.at += 1;
                    let escaped = self.rest().chars().next().unwrap_or_default();
                    value.push(escaped);
                    self.at += escaped.len_utf8();
                }
                _ => {
                    value.push(letter);
                    self.at += letter.len_utf8();
                }
            }
        }
        self.need("\"");
        self.nodes[node].value = value;
        self.close(node);
    }
}
