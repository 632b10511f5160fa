//! The voice of comments and documentation: how often they use words that hide who does what.
//!
//! Rule: `tests/fixtures/voice.tsv` has a budget for each kind of file, in words per 1,000 lines. It only falls: a kind above its
//! budget fails with its worst files, and a kind below it fails with the number to write there. Strings that people read have no
//! such word at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kode_e2e::strings;

use crate::headers::sources;
use crate::source::root;

/// The file of the budgets, from the root of the repository.
const BUDGETS: &str = "tests/fixtures/voice.tsv";

/// Folders of texts that are written for models.
const PROMPTS: &str = "/prompts/";

/// The number of files that a failure lists.
const SHOWN: usize = 8;

/// Phrases without an actor, negated nouns, and home-made words for standard ones.
const TELLS: &[&str] = &[
    "whoever",
    "nobody",
    "somebody",
    "what is",
    "what was",
    "told of",
    "tells of",
    "tell of",
    "is told",
    "are told",
    "was told",
    "is said",
    "are said",
    "was said",
    "so many",
    "so much",
    "is none",
    "are none",
    "stands",
    "stand in",
    "takes the place",
    "take the place",
    "taken for",
    "takes up",
    "taken up",
    "goes on with",
    "go on with",
    "anew",
    "look at",
    "looks at",
    "looked at",
    "speaks of",
    "speak of",
    "spoken of",
    "hears of",
    "hear of",
    "brings along",
    "brought along",
    "put away",
    "given away",
    "standing yes",
    "last words",
    "heeds",
    "heeded",
];

/// Words that open a clause without a noun; a comment that begins with one counts as a phrase.
const OPENERS: &[&str] = &["what ", "who ", "whose "];

/// How comments are written, by the ending of the file.
const KINDS: &[(&str, &str, Syntax)] = &[
    ("rs", "rust", Syntax::C),
    ("ts", "typescript", Syntax::C),
    ("tsx", "typescript", Syntax::C),
    ("js", "typescript", Syntax::C),
    ("mjs", "typescript", Syntax::C),
    ("css", "css", Syntax::C),
    ("lua", "lua", Syntax::Prefix("--")),
    ("py", "python", Syntax::Python),
    ("sh", "shell", Syntax::Prefix("#")),
    ("md", "markdown", Syntax::Prose),
];

/// How a language marks its comments.
#[derive(Clone, Copy)]
enum Syntax {
    /// `//` and `/* … */`.
    C,
    /// A mark at the beginning of each line.
    Prefix(&'static str),
    /// `#`, and texts in three quotes.
    Python,
    /// All lines outside of fenced blocks. Code spans, such as names of tests, are left out.
    Prose,
}

/// The lines and tell-tale words of a kind of file.
#[derive(Default)]
struct Tally {
    lines: usize,
    found: usize,
    /// Each file with such words, and how many.
    files: Vec<(usize, String)>,
}

impl Tally {
    /// Words per 1,000 lines, rounded up.
    fn rate(&self) -> usize {
        (self.found * 1_000).div_ceil(self.lines.max(1))
    }

    fn worst(&self) -> String {
        let mut files = self.files.clone();
        files.sort_by(|one, other| other.cmp(one));
        let shown: Vec<String> =
            files.iter().take(SHOWN).map(|(count, file)| format!("{file} ({count})")).collect();
        shown.join(", ")
    }
}

/// The comments of a text, consecutive lines joined by a blank, each with the number of its lines.
fn comments(text: &str, syntax: Syntax) -> Vec<(usize, String)> {
    let mut comments: Vec<(usize, String)> = Vec::new();
    let mut in_block = false;
    let mut continues = false;
    for line in text.lines().map(str::trim) {
        let comment = comment_of(line, syntax, &mut in_block);
        match (comment, comments.last_mut()) {
            (Some(comment), Some((lines, joined))) if continues => {
                *lines += 1;
                joined.extend([" ", comment]);
            }
            (Some(comment), _) => comments.push((1, comment.to_owned())),
            (None, _) => {}
        }
        continues = comment.is_some();
    }
    comments
}

/// The words of a line that is a comment; `in_block` tells whether a block is open before it and, afterwards, behind it.
fn comment_of<'a>(line: &'a str, syntax: Syntax, in_block: &mut bool) -> Option<&'a str> {
    let words = |line: &'a str, marks: &[char]| Some(line.trim_matches(marks).trim());
    match syntax {
        Syntax::C if *in_block || line.starts_with("/*") || line.starts_with("{/*") => {
            *in_block = !line.contains("*/");
            words(line, &['/', '*', '!', '{', '}', ' '])
        }
        Syntax::C if line.starts_with("//") => words(line, &['/', '!', ' ']),
        Syntax::Prefix(mark) if line.starts_with(mark) && !line.starts_with("#!") => {
            words(line.trim_start_matches(mark), &[' '])
        }
        Syntax::Python if *in_block || line.starts_with("\"\"\"") => {
            *in_block ^= line.matches("\"\"\"").count() % 2 == 1;
            words(line, &['"', ' '])
        }
        Syntax::Python if line.starts_with('#') && !line.starts_with("#!") => words(line, &['#', ' ']),
        Syntax::Prose if line.starts_with("```") => {
            *in_block = !*in_block;
            None
        }
        Syntax::Prose if !*in_block && !line.is_empty() => Some(line),
        Syntax::C | Syntax::Prefix(_) | Syntax::Python | Syntax::Prose => None,
    }
}

/// How often the phrases are in a comment, as whole words in any letter case, its opener included.
fn count(text: &str) -> usize {
    let text = text.to_lowercase();
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    let is_whole = |at: usize, phrase: &str| {
        !text[..at].ends_with(is_word) && !text[at + phrase.len()..].starts_with(is_word)
    };
    let phrases = TELLS.iter().flat_map(|phrase| text.match_indices(phrase));
    let phrases = phrases.filter(|(at, phrase)| is_whole(*at, phrase)).count();
    phrases + usize::from(OPENERS.iter().any(|opener| text.starts_with(opener)))
}

/// How often the phrases are in a comment or a paragraph.
fn reports(comment: &str, syntax: Syntax) -> usize {
    match syntax {
        Syntax::Prose => count(&comment.split('`').step_by(2).collect::<Vec<_>>().join("`")),
        Syntax::C | Syntax::Prefix(_) | Syntax::Python => count(comment),
    }
}

/// The tallies of all kinds. Generated files are left out: their words come from files that are counted.
fn tallies() -> BTreeMap<&'static str, Tally> {
    let mut tallies: BTreeMap<&'static str, Tally> = BTreeMap::new();
    for file in sources() {
        let ending = Path::new(&file).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let Some((_, kind, syntax)) = KINDS.iter().find(|(known, ..)| *known == ending) else { continue };
        let text = fs::read_to_string(root().join(&file)).expect("a source is text");
        if file.contains(PROMPTS) || text.lines().take(3).any(|line| line.contains("Generated by")) {
            continue;
        }
        let comments = comments(&text, *syntax);
        let found = comments.iter().map(|(_, comment)| reports(comment, *syntax)).sum();
        let tally = tallies.entry(kind).or_default();
        tally.lines += comments.iter().map(|(lines, _)| lines).sum::<usize>();
        tally.found += found;
        if found > 0 {
            tally.files.push((found, file));
        }
    }
    tallies
}

/// The budgets by kind of file.
fn budgets() -> BTreeMap<String, usize> {
    let text = fs::read_to_string(root().join(BUDGETS)).expect("the budgets");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let read = |row: &str| {
        let (kind, budget) = row.split_once('\t').expect("a kind and a number");
        (kind.to_owned(), budget.parse().expect("a number"))
    };
    rows.map(read).collect()
}

#[test]
fn few_comments_hide_who_does_what() {
    let (tallies, budgets) = (tallies(), budgets());
    let kinds: Vec<&str> = budgets.keys().map(String::as_str).collect();
    assert_eq!(tallies.keys().copied().collect::<Vec<_>>(), kinds, "{BUDGETS} has other kinds of files");
    let mut wrong = Vec::new();
    for (kind, tally) in &tallies {
        let (rate, budget) = (tally.rate(), budgets[*kind]);
        println!("{kind}: {} in {} lines, {rate} per 1,000, budget {budget}", tally.found, tally.lines);
        if rate > budget {
            wrong.push(format!(
                "{kind}: {rate} of 1,000 lines, the budget is {budget}. Name who does what; tests/e2e/voice.rs has the \
                 phrases. Most are in {}.",
                tally.worst()
            ));
        } else if rate < budget {
            wrong.push(format!("{kind}: only {rate} of 1,000 lines. Write {rate} into {BUDGETS}."));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Words at the beginning of a text that has no subject.
const HEADLESS: &[&str] = &["is ", "are ", "was ", "were ", "has been ", "can be ", "takes the "];

/// The reason why a string that people read breaks the rules of the texts; `None` if it keeps them.
fn fault(text: &str) -> Option<&'static str> {
    let lower = text.trim_start().to_lowercase();
    let is_question = text.contains('?');
    if !is_question
        && HEADLESS.iter().any(|word| text.starts_with(char::is_uppercase) && lower.starts_with(word))
    {
        return Some("it has no subject");
    }
    let comments =
        count(text) - usize::from(is_question && OPENERS.iter().any(|opener| lower.starts_with(opener)));
    (comments > 0).then_some("it hides who does what")
}

#[test]
fn strings_that_people_read_name_who_does_what() {
    let mut wrong = Vec::new();
    for (_, files) in strings::surfaces(root()) {
        for (file, found) in files {
            for string in found {
                if let Some(why) = fault(&string.text) {
                    wrong.push(format!("{file}:{}: {why}: {}", string.line, string.text));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} strings:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn strings_without_a_subject_and_with_home_made_words_are_faults() {
    for (text, is_fault) in [
        ("Is sent when the server is ready.", true),
        ("What the rule says", true),
        ("The turn goes on with the rest", true),
        ("What should change?", false),
        ("is over 4 MB", false),
        ("Restarting the server…", false),
    ] {
        assert_eq!(fault(text).is_some(), is_fault, "{text}");
    }
}

#[test]
fn phrases_are_found_in_comments_alone_and_over_line_breaks() {
    let found = |text: &str, syntax: Syntax| {
        comments(text, syntax).iter().map(|(_, text)| reports(text, syntax)).sum::<usize>()
    };
    for (text, syntax, expected) in [
        ("/// Whoever asks is\n/// told of it.\nlet nobody = 1;", Syntax::C, 3),
        ("/* what\n   is left */\nwhat is", Syntax::C, 2),
        ("// Whatever waits\n\n// Who waits", Syntax::C, 1),
        ("// anew\n\n// newly, understands, somebody_else", Syntax::C, 1),
        ("--- nobody\nlocal nobody", Syntax::Prefix("--"), 1),
        ("#!/bin/sh nobody\n# nobody", Syntax::Prefix("#"), 1),
        ("\"\"\"Nobody\nis told.\"\"\"\nnobody = 1  \n# nobody", Syntax::Python, 3),
        ("It is said by `nobody`.", Syntax::Prose, 1),
        ("It is said.\n```sh\nnobody\n```\nso\nmany", Syntax::Prose, 2),
    ] {
        assert_eq!(found(text, syntax), expected, "{text}");
    }
}
