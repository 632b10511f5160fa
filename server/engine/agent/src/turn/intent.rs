//! Detecting answers that only announce work.
//!
//! Rule: what counts is how the answer ends. It announces when it ends with a colon or three dots, or when its end says
//! "let me" or 让我 and then begins something. A long answer is one, whatever it ends with; so is one that ends with
//! code. What answers a question announces only in words. This guesses, so what comes of it is bounded and shown.

/// A longer answer has said something, in characters.
const LONG_ANSWER: usize = 1_500;

/// The number of characters at the end of an answer that are searched for an announcement.
const END: usize = 200;

/// The words after "let me" in an announcement.
const LET_ME: [&str; 5] = ["first", "start", "check", "look", "fix"];

/// The words after 让我 in an announcement.
const LET_ME_CHINESE: [&str; 6] = ["先", "来", "开始", "查看", "检查", "修复"];

/// Words with which an answer says that it is going to do something.
const WILL: [&str; 10] =
    ["i will", "i'll", "i’ll", "i am going to", "i'm going to", "let me", "我将", "我会", "我来", "让我"];

/// The words that make a request of a question.
const REQUESTS: [&str; 11] = [
    "can you",
    "could you",
    "would you",
    "will you",
    "can we",
    "please",
    "请",
    "帮",
    "能不能",
    "可以",
    "你能",
];

/// Whether an answer without calls only announces what it is going to do; `asked` looks up the prompt, where that
/// matters.
pub(super) fn announces(answer: &str, asked: impl FnOnce() -> String) -> bool {
    let answer = answer.trim_end();
    if answer.chars().nth(LONG_ANSWER).is_some() || answer.ends_with("```") {
        return false;
    }
    // Emphasis may close after the last word.
    let bare = answer.trim_end_matches(['*', '_', ' ']);
    let is_open = bare.ends_with(['：', ':', '…']) || bare.ends_with("...");
    begins_something(end(bare)) || (is_open && (says_will(end(bare)) || !is_question(&asked())))
}

/// Whether a prompt only wants to know something.
fn is_question(prompt: &str) -> bool {
    let lower = prompt.trim_end().to_lowercase();
    lower.ends_with(['?', '？']) && !REQUESTS.iter().any(|request| lower.contains(request))
}

fn says_will(end: &str) -> bool {
    let lower = end.to_lowercase();
    WILL.iter().any(|will| lower.contains(will))
}

/// The last characters of a text.
fn end(text: &str) -> &str {
    let start = text.char_indices().rev().nth(END - 1).map_or(0, |(start, _)| start);
    &text[start..]
}

fn begins_something(end: &str) -> bool {
    let lower = end.to_lowercase();
    let after = |phrase: &'static str| lower.match_indices(phrase).map(|(at, _)| &lower[at + phrase.len()..]);
    let chinese = after("让我").any(|rest| LET_ME_CHINESE.iter().any(|verb| rest.starts_with(verb)));
    let english = after("let me ").any(|rest| {
        let word: String = rest.trim_start().chars().take_while(|char| char.is_alphabetic()).collect();
        LET_ME.contains(&word.as_str())
    });
    chinese || english
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_are_distinguished_from_answers() {
        let long = format!("{} Let me look:", "It is so. ".repeat(200));
        let early = format!("Let me look. {}", "Here is what I found: it works. ".repeat(10));
        for (answer, expected) in [
            ("现在开始修改文件：", true),
            ("I will now read the file:", true),
            ("I will now read the file:  \n", true),
            ("**Now the tests:**", true),
            ("Looking at the code...", true),
            ("Looking at the code…", true),
            ("好的，让我先看看这个文件。", true),
            ("让我来处理。", true),
            ("让我开始吧", true),
            ("让我查看一下代码", true),
            ("让我检查一下", true),
            ("让我修复这个错误", true),
            ("Let me first read it.", true),
            ("OK. let me start with the tests.", true),
            ("LET ME CHECK the build.", true),
            ("Let me look at it", true),
            ("Let me  fix that.", true),
            ("I fixed the greeting; the tests pass.", false),
            ("It is done. Let me know if anything is missing.", false),
            ("Let me explain: the parser is greedy.", false),
            ("Let me fixate on this.", false),
            ("让我们庆祝", false),
            ("Done: all 12 tests pass.", false),
            ("Use this:\n```sh\necho ...\n```", false),
            ("", false),
            (long.as_str(), false),
            (early.as_str(), false),
        ] {
            assert_eq!(announces(answer, || "fix it".to_owned()), expected, "{answer}");
        }
    }

    #[test]
    fn what_answers_a_question_announces_only_in_words() {
        for (prompt, answer, expected) in [
            ("What does it print?", "It prints these two lines:", false),
            ("What does it print? ", "One, two, three...", false),
            ("它输出什么？", "输出如下：", false),
            ("Where is the parser?", "I will look for it:", true),
            ("Where is the parser?", "I'll search...", true),
            ("Where is the parser?", "Let me check.", true),
            ("解析器在哪里？", "我来找一下：", true),
            ("解析器在哪里？", "让我先看看", true),
            ("Can you fix it?", "Now the tests:", true),
            ("能不能修复它？", "现在开始修改文件：", true),
            ("What is wrong? Fix it.", "Now the tests:", true),
        ] {
            assert_eq!(announces(answer, || prompt.to_owned()), expected, "{prompt} {answer}");
        }
    }
}
