//! The keys of settings files: what each is called, holds and does, and from which files it counts.
//!
//! Rule: a key exists by standing in this table. The reader goes by it for what it knows, what it ignores and what may be
//! a slip; the JSON Schema, the list of effective values and what may be written are made from it.

pub mod schema;
mod table;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use schema::{SCHEMA_FILE, schema};
pub use table::KEYS;

/// A key is treated as a typo of another when at most this many letters differ.
const MAX_SLIP: usize = 2;
/// Shorter keys are too much like each other to say.
const MIN_SLIP_LENGTH: usize = 4;

/// One key of settings files.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name, with those of the objects it is in before it: `permissions.allow`.
    pub path: &'static str,
    /// Its content.
    pub shape: KeyShape,
    /// Its topic.
    pub kind: KeyTopic,
    /// From which files it counts.
    pub reach: KeyReach,
    /// Its effect, in a sentence without a period.
    pub doc: &'static str,
    /// The default value, as JSON; empty where that is nothing.
    pub default: &'static str,
}

/// The type of a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyShape {
    /// True or false.
    Switch,
    /// A whole number within bounds.
    Whole {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// A number within bounds.
    Number {
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
    },
    /// A text.
    Text,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A list of texts; those of all files count together.
    Texts,
    /// True or false by names that are free; of each name the strongest counts.
    SwitchesByName,
    /// Texts by names that are free; of each name the strongest counts.
    TextsByName,
    /// Objects by names that are free; of each name the strongest counts.
    ObjectsByName,
    /// Lists by names that are free; those of all files count together.
    ListsByName,
    /// A list of objects; those of all files count together.
    Objects,
    /// Objects by names that are free, or a list of objects; the value of the strongest file counts.
    ObjectsByNameOrList,
    /// An object, or something else that its own documentation describes.
    Anything,
}

/// The topic of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyTopic {
    /// Which models are asked, where, with which keys.
    Api,
    /// Behavior and permissions of the agent.
    Behavior,
    /// Appearance.
    Interface,
}

impl KeyTopic {
    /// Its name in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Behavior => "behavior",
            Self::Interface => "interface",
        }
    }
}

/// From which files a key counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyReach {
    /// From all.
    Everywhere,
    /// From those of the workspace only as far as the user has approved it.
    Approved,
    /// As [`KeyReach::Approved`] where it loosens, and at once where it narrows.
    Loosens,
    /// From those of the user and the administrator alone.
    Own,
    /// From none: it is another program's, or has no meaning here. Why, in a sentence without a period; empty where no user
    /// would wonder.
    Ignored(&'static str),
}

/// The type of a name in a settings file.
#[derive(Clone, Copy, Debug)]
pub enum KeyMatch {
    /// A key.
    Key(&'static Key),
    /// An object of further keys.
    Section,
    /// Nothing, and perhaps a typo of this key.
    Nothing(Option<&'static Key>),
}

impl Key {
    /// The last of its names.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// The default value.
    #[must_use]
    pub fn default_value(&self) -> Option<Value> {
        serde_json::from_str(self.default).ok()
    }

    /// Whether it does anything.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        !matches!(self.reach, KeyReach::Ignored(_))
    }
}

impl KeyShape {
    /// Whether it holds entries under names that are free.
    #[must_use]
    pub fn is_by_name(self) -> bool {
        matches!(self, Self::SwitchesByName | Self::TextsByName | Self::ObjectsByName | Self::ListsByName)
    }

    /// The problems of a value, for people: what has to be written instead.
    ///
    /// # Errors
    /// That text, without a period.
    pub fn check(self, value: &Value) -> Result<(), String> {
        let wanted = |fits: bool, what: &str| if fits { Ok(()) } else { Err(format!("write {what}")) };
        match (self, value) {
            (Self::Switch, _) => wanted(value.is_boolean(), "true or false"),
            (Self::Whole { min, max }, _) => {
                let fits = value.as_i64().is_some_and(|number| (min..=max).contains(&number));
                wanted(fits, &format!("a whole number {}", bounds(min as f64, max as f64)))
            }
            (Self::Number { min, max }, _) => {
                let fits = value.as_f64().is_some_and(|number| (min..=max).contains(&number));
                wanted(fits, &format!("a number {}", bounds(min, max)))
            }
            (Self::Text, _) => wanted(value.is_string(), "a text in quotes"),
            (Self::Choice(names), _) => {
                let fits = value.as_str().is_some_and(|text| names.contains(&text));
                wanted(fits, &format!("one of \"{}\"", names.join("\", \"")))
            }
            (Self::Texts, Value::Array(items)) => items.iter().try_for_each(|item| Self::Text.check(item)),
            (Self::Texts, _) => wanted(false, "a list of texts"),
            (Self::SwitchesByName, Value::Object(entries)) => {
                entries.values().try_for_each(|entry| Self::Switch.check(entry))
            }
            (Self::SwitchesByName, _) => wanted(false, "an object of true and false"),
            (Self::TextsByName, Value::Object(entries)) => {
                entries.values().try_for_each(|entry| Self::Text.check(entry))
            }
            (Self::TextsByName, _) => wanted(false, "an object of texts"),
            (Self::ObjectsByName, Value::Object(entries)) => {
                wanted(entries.values().all(Value::is_object), "an object of objects")
            }
            (Self::ObjectsByName, _) => wanted(false, "an object of objects"),
            (Self::ListsByName, Value::Object(entries)) => {
                wanted(entries.values().all(Value::is_array), "an object of lists")
            }
            (Self::ListsByName, _) => wanted(false, "an object of lists"),
            (Self::Objects, Value::Array(items)) => {
                wanted(items.iter().all(Value::is_object), "a list of objects")
            }
            (Self::Objects, _) => wanted(false, "a list of objects"),
            (Self::ObjectsByNameOrList, Value::Object(entries)) => {
                wanted(entries.values().all(Value::is_object), "an object of objects, or a list of objects")
            }
            (Self::ObjectsByNameOrList, Value::Array(items)) => {
                wanted(items.iter().all(Value::is_object), "an object of objects, or a list of objects")
            }
            (Self::ObjectsByNameOrList, _) => wanted(false, "an object of objects, or a list of objects"),
            (Self::Anything, _) => Ok(()),
        }
    }
}

fn bounds(min: f64, max: f64) -> String {
    let is_open = |bound: f64| bound.abs() >= i64::MAX as f64;
    match (is_open(min), is_open(max)) {
        (true, true) => "of any size".to_owned(),
        (false, true) => format!("from {min} on"),
        (true, false) => format!("up to {max}"),
        (false, false) => format!("from {min} to {max}"),
    }
}

/// The key of that path.
#[must_use]
pub fn key(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The key that a path leads to or into: `env.PATH` leads into `env`. The rest of the path is the name in it.
#[must_use]
pub fn key_of(path: &str) -> Option<(&'static Key, Option<&str>)> {
    if let Some(key) = key(path) {
        return Some((key, None));
    }
    let has_names = |key: &&Key| key.shape.is_by_name() || matches!(key.shape, KeyShape::ObjectsByNameOrList);
    let into = KEYS.iter().filter(has_names);
    into.filter_map(|key| Some((key, path.strip_prefix(key.path)?.strip_prefix('.')?)))
        .find(|(_, name)| !name.is_empty())
        .map(|(key, name)| (key, Some(name)))
}

/// The type of a path.
#[must_use]
pub fn find(path: &str) -> KeyMatch {
    if let Some(key) = key(path) {
        return KeyMatch::Key(key);
    }
    let is_inside = |key: &Key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
    if KEYS.iter().any(is_inside) {
        return KeyMatch::Section;
    }
    KeyMatch::Nothing(near(path))
}

/// The key that may be meant by an unknown path: one letter or two are different, or its case alone.
#[must_use]
pub fn near(path: &str) -> Option<&'static Key> {
    if path.chars().count() < MIN_SLIP_LENGTH {
        return None;
    }
    let distance = |key: &&Key| {
        if key.path.eq_ignore_ascii_case(path) { 0 } else { edit_distance(key.path, path) }
    };
    let used = KEYS.iter().filter(|key| key.is_in_use());
    used.min_by_key(distance).filter(|key| distance(key) <= MAX_SLIP)
}

/// How many letters have to be put in, left out or replaced, up to one more than is of interest.
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    if one.chars().count().abs_diff(other.len()) > MAX_SLIP {
        return MAX_SLIP + 1;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, candidate) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *candidate);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
