//! The second opinion: tree-sitter's reading of a script, as the words it finds and the part each plays.
//!
//! Rule: an allow-list of node kinds. A tree with any other kind, with an error, or not done in time is no opinion;
//! commands found anywhere in it are still reported.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::reader::{WordRole, WordSpan};

/// How long the parser may take.
const TIME_LIMIT: Duration = Duration::from_millis(500);

/// The syntax tree of a script.
#[derive(Debug, Default)]
pub(super) struct GrammarParse {
    /// The words in source order.
    pub spans: Vec<WordSpan>,
    /// The `[ ... ]` commands, whose words it splits in its own way.
    pub tests: Vec<(usize, usize)>,
    /// Every command in the tree, also where it is no opinion.
    pub commands: Vec<(usize, usize)>,
    /// Functions that call themselves in a pipeline or in the background.
    pub bombs: Vec<(usize, usize)>,
    /// Why this is no opinion.
    pub objection: Option<&'static str>,
}

/// Kinds that hold other commands.
const CONTAINERS: [&str; 15] = [
    "program",
    "list",
    "pipeline",
    "redirected_statement",
    "subshell",
    "compound_statement",
    "if_statement",
    "elif_clause",
    "else_clause",
    "for_statement",
    "while_statement",
    "do_group",
    "negated_command",
    "command",
    "variable_assignments",
];
/// Kinds whose words are checked by the first reader alone.
const SILENT: [&str; 6] =
    ["comment", "heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor", "heredoc_redirect_start"];
const REDIRECTS: [&str; 3] = ["file_redirect", "heredoc_redirect", "herestring_redirect"];
const WORDS: [&str; 9] = [
    "word",
    "ansi_c_string",
    "string",
    "raw_string",
    "number",
    "concatenation",
    "simple_expansion",
    "expansion",
    "brace_expression",
];
const IN_WORDS: [&str; 3] = ["string_content", "variable_name", "special_variable_name"];
const IN_TESTS: [&str; 6] = [
    "unary_expression",
    "binary_expression",
    "test_operator",
    "negation_expression",
    "extglob_pattern",
    "regex",
];

/// Reads a script.
pub(super) fn opinion(text: &str) -> GrammarParse {
    let mut opinion = GrammarParse::default();
    let Some(tree) = parse(text) else {
        opinion.objection = Some("the line takes too long to read");
        return opinion;
    };
    if tree.root_node().has_error() {
        opinion.objection = Some("the line is not plain shell language");
    }
    opinion.walk(&tree, text);
    opinion.spans.sort_unstable();
    opinion
}

fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    // The grammar was seen to read foreign memory on characters past ASCII. To the shell all of these are plain
    // characters, so that another plain one may stand for each of their bytes.
    let ascii: Vec<u8> = text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'.' }).collect();
    let begun = Instant::now();
    let mut progress = |_: &tree_sitter::ParseState| {
        if begun.elapsed() > TIME_LIMIT { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    parser.parse_with_options(&mut |at, _| ascii.get(at..).unwrap_or_default(), None, Some(options))
}

impl GrammarParse {
    /// Goes through the tree without recursion: its depth is the line's.
    fn walk(&mut self, tree: &Tree, text: &str) {
        let mut cursor = tree.walk();
        // The way from the root: a node finds its parent only by going that way again.
        let mut above: Vec<Node<'_>> = Vec::new();
        loop {
            let node = cursor.node();
            let descend = self.visit(node, above.last().copied(), cursor.field_name(), text);
            if descend && cursor.goto_first_child() {
                above.push(node);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                above.pop();
            }
        }
    }

    /// Notes a node; says whether to look into it.
    fn visit(&mut self, node: Node<'_>, above: Option<Node<'_>>, field: Option<&str>, text: &str) -> bool {
        let kind = node.kind();
        if !node.is_named() || SILENT.contains(&kind) {
            return false;
        }
        let (start, end) = (node.start_byte(), node.end_byte());
        let mut note = |part| self.spans.push(WordSpan { start, end, part });
        match kind {
            "command" | "test_command" => self.commands.push((start, end)),
            "function_definition" if is_bomb(node, text) => self.bombs.push((start, end)),
            _ => {}
        }
        let parent = above.map_or("", |parent| parent.kind());
        match kind {
            "command_name" => note(WordRole::Name),
            "variable_assignment" => note(WordRole::Argument),
            "variable_name" if parent == "for_statement" => {}
            "test_command" if text.get(start..end).is_some_and(|test| !test.starts_with("[[")) => {
                self.tests.push((start, end));
            }
            _ if IN_WORDS.contains(&kind) => {}
            _ if IN_TESTS.contains(&kind) && !self.tests.is_empty() => {}
            _ if WORDS.contains(&kind) => match parent {
                "command" | "for_statement" => note(WordRole::Argument),
                // A fused redirection takes the arguments after it for further files.
                "file_redirect" | "herestring_redirect" => {
                    let first = field != Some("destination") || is_first_target(node, above);
                    let duplicate = kind == "number";
                    if !duplicate {
                        note(if first { WordRole::Target } else { WordRole::Argument });
                    }
                }
                "heredoc_redirect" => note(WordRole::Argument),
                _ => {}
            },
            _ if CONTAINERS.contains(&kind) || REDIRECTS.contains(&kind) => {}
            _ => {
                self.objection = self.objection.or(Some("this part of the shell language is not looked into"))
            }
        }
        if kind == "expansion" && node.named_child_count() != 1 {
            self.objection =
                self.objection.or(Some("a parameter expansion with an operator can run commands"));
        }
        true
    }

    /// Whether the first reader found the same words.
    pub(super) fn agrees(&self, spans: &[WordSpan]) -> bool {
        let in_test =
            |span: &WordSpan| self.tests.iter().any(|(start, end)| *start <= span.start && span.end <= *end);
        let tests_match = self.tests.iter().all(|(start, end)| {
            let named = |span: &&WordSpan| {
                span.part == WordRole::Name && span.start == *start && span.end == start + 1
            };
            spans.iter().filter(named).count() == 1
                && spans.iter().any(|span| span.end == *end && span.start + 1 == *end)
                && spans
                    .iter()
                    .filter(|span| in_test(span))
                    .all(|span| span.start == *start || span.part == WordRole::Argument)
        });
        let mine = self.spans.iter().filter(|span| !in_test(span));
        tests_match && mine.eq(spans.iter().filter(|span| !in_test(span)))
    }
}

fn is_first_target(node: Node<'_>, above: Option<Node<'_>>) -> bool {
    let Some(parent) = above else { return true };
    parent.child_by_field_name("destination").is_none_or(|first| first.id() == node.id())
}

/// Whether a function calls itself in a pipeline or in the background.
fn is_bomb(function: Node<'_>, text: &str) -> bool {
    let slice = |node: Node<'_>| text.get(node.start_byte()..node.end_byte()).unwrap_or_default();
    let Some(name) = function.child_by_field_name("name") else { return false };
    let Some(body) = function.child_by_field_name("body") else { return false };
    let name = slice(name);
    let body = slice(body);
    let calls = body.split(|c: char| c.is_whitespace() || "|&;{}()".contains(c)).filter(|word| *word == name);
    calls.count() > 0 && (body.contains('|') || body.contains('&'))
}
