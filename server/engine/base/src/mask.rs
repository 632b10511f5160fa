//! Settings as they may be shown, logged or sent: without the secrets in them.
//!
//! Rule: this is the one place where secrets are masked, and whatever states a setting to anybody goes through it. What names a
//! secret is masked whatever it says, variables and headers unless they plainly hold none, and in all other texts what looks
//! like a secret. References to variables are no secrets.

use std::sync::LazyLock;

use fancy_regex::{Captures, Regex};
use serde_json::{Map, Value};

/// The placeholder of a masked text.
pub const MASK: &str = "••••••";

/// Parts of names of values that are masked; in small letters, without what separates words.
const SECRET_NAMES: [&str; 14] = [
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "authorization",
    "private",
    "accesskey",
    "cookie",
    "webhook",
    "signature",
    "bearer",
];
/// Names of objects all of whose values are masked.
const HEADERS: &str = "headers";
/// Names of objects whose values are variables.
const VARIABLES: &str = "env";
/// Names that look like secret ones and hold none.
const OPEN_NAMES: [&str; 3] = ["apikeyhelper", "apikeyhelperttlms", "apikeyenv"];
/// The longest value of a variable that is treated as a plain word.
const MAX_WORD: usize = 32;
/// The fewest characters of a part of a word that looks like a secret.
const MIN_SECRET: usize = 12;
/// So often the kind of character changes in what looks like a secret.
const MIN_CHANGES: usize = 3;

/// A value without the secrets in it. `name` is its key.
#[must_use]
pub fn masked(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if is_secret_name(name) => Value::String(unless_reference(text)),
        Value::String(text) => Value::String(masked_text(text)),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(inner, value)| {
                let value = match name.to_ascii_lowercase().as_str() {
                    HEADERS => masked(SECRET_NAMES[0], value),
                    VARIABLES => masked_variable(inner, value),
                    _ => masked(inner, value),
                };
                (inner.clone(), value)
            });
            Value::Object(entries.collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            let mut is_secret_next = false;
            let items = items.iter().map(|item| {
                let is_secret = std::mem::replace(&mut is_secret_next, is_secret_flag(item));
                if is_secret && !is_secret_next { masked(SECRET_NAMES[0], item) } else { masked(name, item) }
            });
            items.collect()
        }
        Value::Number(_) if is_secret_name(name) => Value::String(MASK.to_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The value of a variable of the environment without a secret in it.
#[must_use]
pub fn masked_variable(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if is_secret_name(name) => Value::String(unless_reference(text)),
        Value::String(text) if is_plain(text) => Value::String(masked_text(text)),
        Value::String(text) => Value::String(unless_reference(text)),
        other => masked(name, other),
    }
}

/// The request of a file under a key, without the secrets in it.
#[must_use]
pub fn masked_trust_request(key: &str, text: &str) -> String {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let Some(Ok(value)) = values.next() else { return masked_text(text) };
    let rest = &text[values.byte_offset()..];
    let (section, name) = key.split_once('.').unwrap_or((key, key));
    let shown = match section {
        VARIABLES => masked_variable(name, &value),
        _ => masked(name, &value),
    };
    format!("{shown}{}", masked_text(rest))
}

/// A text without the secrets in it: a command line, an address, a rule.
#[must_use]
pub fn masked_text(text: &str) -> String {
    if !may_hold_secret(text) {
        return text.to_owned();
    }
    let mut masked = text.to_owned();
    for (pattern, replace) in PATTERNS.iter() {
        match pattern.try_replacen(&masked, 0, |found: &Captures<'_, str>| replace(found)) {
            Ok(replaced) => masked = replaced.into_owned(),
            // Values that cannot be searched are not shown.
            Err(_) => return MASK.to_owned(),
        }
    }
    masked
}

/// The replacement of a found secret.
type MaskText = fn(&Captures<'_, str>) -> String;
type SecretPattern = (Regex, MaskText);

/// Text that looks like a secret, by its surroundings.
static PATTERNS: LazyLock<Vec<SecretPattern>> = LazyLock::new(|| {
    let patterns: [(&str, MaskText); 7] = [
        // The user of an address.
        (r#"(?i)([a-z][a-z0-9+.-]*://)[^\s/?#'"]+@"#, |found| format!("{}{MASK}@", &found[1])),
        // The parameters of an address.
        (r#"([?&;#])([^=&#?\s'"]+)=([^&#\s'"()]+)"#, |found| {
            let is_open = !is_secret_name(&found[2]) && is_plain(&found[3]);
            if is_open { found[0].to_owned() } else { format!("{}{}={MASK}", &found[1], &found[2]) }
        }),
        (r#"(?i)\b(bearer|basic)(\s+)([a-z0-9._~+/=-]+)"#, |found| {
            // Words continue after these, too.
            let is_word = found[3].chars().all(|char| char.is_ascii_lowercase()) && found[3].len() < 16;
            if is_word && found[1].starts_with('b') {
                return found[0].to_owned();
            }
            format!("{}{}{MASK}", &found[1], &found[2])
        }),
        // The user whom a program logs in.
        (r#"(\s(?:-u|--user|--proxy-user)[\s=]+["']?[^\s:"']+:)([^\s"']+)"#, |found| {
            format!("{}{MASK}", &found[1])
        }),
        // The value that is set to something.
        (
            r#"([A-Za-z_][A-Za-z0-9_.-]*)(["']?\s*[:=]\s*["']?)((?:(?i:bearer|basic|token)\s+)?[^\s"',;&)}\]]+)"#,
            |found| {
                let value = &found[3];
                match is_secret_name(&found[1]) {
                    true if !is_reference(value) && !says_nothing(value) => {
                        format!("{}{}{MASK}", &found[1], &found[2])
                    }
                    // The value may set something in turn.
                    false if value.contains(['=', ':']) => {
                        format!("{}{}{}", &found[1], &found[2], masked_text(value))
                    }
                    true | false => found[0].to_owned(),
                }
            },
        ),
        // The text after an option.
        (r#"(?<![^\s"'(])(--?[A-Za-z][A-Za-z0-9_-]*)(\s+["']?)([^\s"'()-][^\s"'()]*)"#, |found| {
            let is_open = !is_secret_name(&found[1]) || is_reference(&found[3]) || says_nothing(&found[3]);
            if is_open { found[0].to_owned() } else { format!("{}{}{MASK}", &found[1], &found[2]) }
        }),
        // A character that is not part of a word.
        (r"(sha256:)?([A-Za-z0-9_+=~-]{12,})", |found| {
            let is_open = found.get(1).is_some() || !looks_secret(&found[2]);
            if is_open { found[0].to_owned() } else { MASK.to_owned() }
        }),
    ];
    let made = patterns.into_iter().map(|(pattern, replace)| (Regex::new(pattern).ok(), replace));
    made.filter_map(|(pattern, replace)| Some((pattern?, replace))).collect()
});

/// Whether it is worth looking closer.
fn may_hold_secret(text: &str) -> bool {
    text.contains(['=', '@'])
        || has_secret_name(text)
        || {
            let mut words = text.split(|char: char| !char.is_ascii_alphanumeric());
            words.any(|word| word.len() >= MIN_SECRET)
        }
        || text.to_ascii_lowercase().contains("basic ")
        || text.contains("-u ")
}

fn is_secret_name(name: &str) -> bool {
    let name: String = name
        .chars()
        .filter(|char| !matches!(char, '-' | '_' | '.'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let counts = name.ends_with("tokens") || name.ends_with("tokenlimit");
    !counts && !OPEN_NAMES.contains(&name.as_str()) && SECRET_NAMES.iter().any(|secret| name.contains(secret))
}

fn has_secret_name(text: &str) -> bool {
    let text: String =
        text.chars().filter(|char| !matches!(char, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect();
    SECRET_NAMES.iter().any(|secret| text.contains(secret))
}

fn is_secret_flag(item: &Value) -> bool {
    let flag = item.as_str().and_then(|text| text.strip_prefix('-'));
    flag.is_some_and(|flag| !flag.contains('=') && is_secret_name(flag))
}

fn unless_reference(text: &str) -> String {
    if is_reference(text) { text.to_owned() } else { MASK.to_owned() }
}

fn is_reference(text: &str) -> bool {
    let name = text.strip_prefix('$').unwrap_or_default();
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    let braced = name.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
    text.is_empty() || is_name(name) || braced.is_some_and(is_name)
}

/// Whether the value of a secret name cannot be a secret.
fn says_nothing(value: &str) -> bool {
    !value.contains(char::is_alphanumeric) || matches!(value, "true" | "false" | "null" | MASK)
}

/// Whether the value of a variable, or of a parameter, plainly is no secret as a whole; parts of it may be.
fn is_plain(text: &str) -> bool {
    let is_small = |char: char| char.is_ascii_lowercase() || "-_.,:*".contains(char);
    let is_large = |char: char| char.is_ascii_uppercase() || "-_.,:*".contains(char);
    let is_place = text.starts_with(['/', '~', '$'])
        || text.starts_with("./")
        || text.starts_with("../")
        || text.contains("://");
    text.contains(char::is_whitespace)
        || is_place
        || text.len() <= 6 && text.chars().all(|char| char.is_ascii_digit())
        || text.len() <= MAX_WORD && (text.chars().all(is_small) || text.chars().all(is_large))
        || matches!(text, "True" | "False")
}

/// Whether a word looks like a secret: a part of it is long and made of letters and digits without any order.
fn looks_secret(word: &str) -> bool {
    word.split(|char: char| !char.is_ascii_alphanumeric()).any(|part| {
        let kind = |char: char| (char.is_ascii_digit(), char.is_ascii_uppercase());
        let kinds: Vec<_> = part.chars().map(kind).collect();
        let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let is_mixed = part.contains(|char: char| char.is_ascii_digit())
            && part.contains(|char: char| char.is_ascii_alphabetic());
        part.len() >= MIN_SECRET && is_mixed && changes >= MIN_CHANGES
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn all_patterns_can_be_read() {
        assert_eq!(PATTERNS.len(), 7);
    }

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let value = json!({
            "a": { "apiKey": "sk-1", "headers": { "x-anything": "s", "y": "${Y}" }, "model": "m", "maxTokens": 5 },
            "b": [{ "env": { "GITHUB_TOKEN": "t", "PATH": "/bin", "DB_PASSWORD": "p", "MODE": "fast", "X": "hunter2" } }],
            "c": { "apiKeyHelper": "vault", "apiKeyEnv": "NAME", "apiKey": { "fromEnv": "NAME" } },
            "d": ["--token", "abc", "--depth", "3"],
        });
        let expected = json!({
            "a": { "apiKey": MASK, "headers": { "x-anything": MASK, "y": "${Y}" }, "model": "m", "maxTokens": 5 },
            "b": [{ "env": { "GITHUB_TOKEN": MASK, "PATH": "/bin", "DB_PASSWORD": MASK, "MODE": "fast", "X": MASK } }],
            "c": { "apiKeyHelper": "vault", "apiKeyEnv": "NAME", "apiKey": { "fromEnv": "NAME" } },
            "d": ["--token", MASK, "--depth", "3"],
        });
        assert_eq!(masked("modelProfiles", &value), expected);
        assert_eq!(masked("GITHUB_TOKEN", &json!("t")), json!(MASK));
    }

    #[test]
    fn what_is_no_secret_is_shown() {
        for text in [
            "Bash(git log:*)",
            "Bash(npm run test:*)",
            "WebFetch(domain:docs.example.com)",
            "https://example.com/a/b?page=2&sort=name",
            "sh ./check.sh sha256:0f3b5c7d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3",
            "claude-sonnet-4-20250514",
            "curl -H \"Authorization: $TOKEN\" https://example.com",
            "basic knowledge of tokens",
            "/home/user/project/.claude/hooks/guard.sh --deep 3",
        ] {
            assert_eq!(masked_text(text), text);
        }
        assert_eq!(masked_trust_request("env.PATH", "\"/opt/bin\""), "\"/opt/bin\"");
        assert_eq!(masked_trust_request("permissions.allow", "Bash(ls *)"), "Bash(ls *)");
    }

    #[test]
    fn what_was_seen_of_secrets_in_texts_is_masked() {
        for (text, shown) in [
            ("curl --token=abc x", "curl --token=•••••• x"),
            ("curl --token abc x", "curl --token •••••• x"),
            ("API_KEY=abc make", "API_KEY=•••••• make"),
            ("curl -H 'Authorization: Bearer abc' x", "curl -H 'Authorization: ••••••' x"),
            ("https://u:p@example.com/x", "https://••••••@example.com/x"),
            ("https://example.com/x?key=aB3&page=2", "https://example.com/x?key=••••••&page=2"),
            ("curl -u me:abc x", "curl -u me:•••••• x"),
            ("https://hooks.example.com/services/T0AB1CD2EF3G", "https://hooks.example.com/services/••••••"),
        ] {
            assert_eq!(masked_text(text), shown);
        }
    }

    proptest! {
        /// A secret never leaves, whichever place it is planted at.
        #[test]
        fn a_secret_planted_at_any_place_never_leaves(
            secret in "[A-Za-z0-9]{16,40}".prop_filter("as random as keys are", |text| looks_secret(text)),
        ) {
            let values = [
                json!({ "env": { "INNOCENT": secret } }),
                json!({ "headers": { "x-innocent": secret } }),
                json!({ "apiKey": secret }),
                json!({ "nested": [{ "password": secret }] }),
                json!({ "args": ["--token", secret] }),
                json!({ "args": ["--serve", format!("--api-key={secret}")] }),
                json!({ "args": [secret] }),
                json!({ "url": format!("https://u:{secret}@example.com/x") }),
                json!({ "url": format!("https://{secret}@example.com") }),
                json!({ "url": format!("https://example.com/x?q=1&k={secret}") }),
                json!({ "url": format!("https://example.com/services/{secret}") }),
                json!({ "hooks": [{ "type": "http", "url": format!("https://example.com/{secret}/x") }] }),
                json!({ "hooks": [{ "command": format!("curl -H 'Authorization: Bearer {secret}' x") }] }),
                json!({ "command": format!("run --token={secret} x") }),
                json!({ "command": format!("run --password \"{secret}\" x") }),
                json!({ "command": format!("SOME_TOKEN={secret} run") }),
                json!({ "command": format!("echo {secret}") }),
                json!({ "prompt": format!("use the key {secret}, please") }),
            ];
            for value in &values {
                let shown = masked("any", value).to_string();
                prop_assert!(!shown.contains(&secret), "{shown}");
                let shown = masked_trust_request("any.thing", &value.to_string());
                prop_assert!(!shown.contains(&secret), "{shown}");
                let shown = masked_text(&value.to_string());
                prop_assert!(!shown.contains(&secret), "{shown}");
            }
            for text in [
                masked_trust_request("env.INNOCENT", &json!(secret).to_string()),
                masked_trust_request("permissions.allow", &format!("Bash(curl --token={secret} *)")),
                masked_trust_request("shell", &format!("curl -H 'X-Key: {secret}'\nls")),
            ] {
                prop_assert!(!text.contains(&secret), "{text}");
            }
        }

        /// Even a short secret never leaves where its place says that it is one.
        #[test]
        fn a_short_secret_never_leaves_where_its_place_reports(secret in "[a-zA-Z]{2}[0-9]{2}[A-Z]{1,6}") {
            for value in [
                json!({ "env": { "ANY": secret } }),
                json!({ "headers": { "any": secret } }),
                json!({ "token": secret }),
                json!({ "args": ["--token", secret] }),
                json!({ "command": format!("run --secret={secret}") }),
                json!({ "url": format!("https://a:{secret}@example.com") }),
                json!({ "url": format!("https://example.com/?sig={secret}") }),
                json!({ "command": format!("curl -H 'Authorization: Bearer {secret}'") }),
            ] {
                let shown = masked("any", &value).to_string();
                prop_assert!(!shown.contains(&secret), "{shown}");
            }
        }
    }
}
