//! Writing one setting into a settings file of the user's choice.
//!
//! Rule: the table of keys says what may be written where; everything else in the file stays as it is. What the user sets in
//! a file of the workspace is approved with it, and nothing else is.

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

use super::keys::{self, Key, KeyReach};
use super::text::{OPTIONS, SettingsText};
use super::write::{broken, own_files};
use super::{SettingsError, SettingsScope, SettingsSources, WriteOutcome};
use kode_base::paths::AbsPath;

/// Why a setting is not written.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// There is no such key.
    #[error("there is no setting `{path}`{}", near.map(|key| format!("; did you mean `{}`?", key.path)).unwrap_or_default())]
    Unknown {
        /// The named value.
        path: String,
        /// The likely key.
        near: Option<&'static Key>,
    },
    /// It does nothing.
    #[error("`{path}` does nothing in kode-ls{}", if why.is_empty() { String::new() } else { format!(": {why}") })]
    Unused {
        /// The key.
        path: &'static str,
        /// Why.
        why: &'static str,
    },
    /// The value does not fit.
    #[error("the value does not fit `{path}`: {wanted}")]
    Value {
        /// The named value.
        path: String,
        /// The text to write.
        wanted: String,
    },
    /// It does not count from there.
    #[error("`{path}` has no effect in {} settings; set it for the user", scope.name())]
    NotThere {
        /// The key.
        path: &'static str,
        /// The scope.
        scope: SettingsScope,
    },
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] SettingsError),
}

impl SettingsSources {
    /// Writes a value into the file of a scope, or takes the key out of it if absent. The file is the one that holds the
    /// key already, else the one that rules are written into. Blocks on the disk.
    ///
    /// # Errors
    /// [`SetError`]; the file is as it was before then.
    pub fn set(
        &self,
        scope: SettingsScope,
        path: &str,
        value: Option<&Value>,
    ) -> Result<WriteOutcome, SetError> {
        let (key, name) = keys::key_of(path)
            .ok_or_else(|| SetError::Unknown { path: path.to_owned(), near: keys::near(path) })?;
        if let KeyReach::Ignored(why) = key.reach {
            return Err(SetError::Unused { path: key.path, why });
        }
        if let Some(value) = value {
            let whole = name.map(|name| Value::from_iter([(name.to_owned(), value.clone())]));
            let checked = key.shape.check(whole.as_ref().unwrap_or(value));
            checked.map_err(|wanted| SetError::Value { path: path.to_owned(), wanted })?;
            let is_bypass = key.path == "permissions.defaultMode" && value == "bypassPermissions";
            if scope != SettingsScope::User && (key.reach == KeyReach::Own || is_bypass) {
                return Err(SetError::NotThere { path: key.path, scope });
            }
        }
        let mut names: Vec<&str> = key.path.split('.').collect();
        names.extend(name);
        let file = self.file_of(scope, &names)?;
        let is_changed = self.change(&file, |text| edited(&file, text, &names, value))?;
        if value.is_some() && scope != SettingsScope::User {
            self.approve_set(&file, path)?;
        }
        Ok(WriteOutcome { file, is_changed })
    }

    /// The file of a scope that holds a key; the usual one where none does.
    fn file_of(&self, scope: SettingsScope, names: &[&str]) -> Result<AbsPath, SettingsError> {
        let holds = |file: &AbsPath| {
            let text = SettingsText::read(file).ok().flatten();
            let root = text.and_then(|text| CstRootNode::parse(&text.text, &OPTIONS).ok());
            root.and_then(|root| root.object_value()).is_some_and(|object| holds(&object, names))
        };
        match own_files(self, scope).into_iter().find(holds) {
            Some(file) => Ok(file),
            None => self.file(scope),
        }
    }

    /// Approves what the user has just set in a file of the workspace.
    fn approve_set(&self, file: &AbsPath, path: &str) -> Result<(), SettingsError> {
        let settings = self.load();
        let inside = format!("{path}.");
        let is_set = |key: &str| key == path || key.starts_with(&inside);
        let trust_requests = settings.withheld.iter().map(|withheld| &withheld.trust_request);
        let set: Vec<_> = trust_requests
            .filter(|trust_request| trust_request.file == *file && is_set(&trust_request.key))
            .collect();
        if set.is_empty() { Ok(()) } else { self.trust().approve(set) }
    }
}

fn holds(object: &CstObject, names: &[&str]) -> bool {
    match names {
        [] => false,
        [last] => object.get(last).is_some(),
        [first, rest @ ..] => object.object_value(first).is_some_and(|inner| holds(&inner, rest)),
    }
}

/// The text with a value in the place of another, or without it.
fn edited(
    file: &AbsPath,
    text: &str,
    names: &[&str],
    value: Option<&Value>,
) -> Result<String, SettingsError> {
    let root =
        CstRootNode::parse(text, &OPTIONS).map_err(|error| broken(file, format!("of this: {error}")))?;
    let expected = |what: &str| broken(file, format!("`{what}` is something else than an object"));
    let Some((last, sections)) = names.split_last() else { return Ok(text.to_owned()) };
    match value {
        Some(value) => {
            let mut object = root.object_value_or_create().ok_or_else(|| expected("its content"))?;
            for section in sections {
                object = object.object_value_or_create(section).ok_or_else(|| expected(section))?;
            }
            match object.get(last) {
                Some(property) => property.set_value(input(value)),
                None => {
                    object.append(last, input(value));
                }
            }
        }
        None => {
            let mut object = root.object_value();
            for section in sections {
                object = object.and_then(|object| object.object_value(section));
            }
            if let Some(property) = object.and_then(|object| object.get(last)) {
                property.remove();
            }
        }
    }
    Ok(root.to_string())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(entries) => {
            CstInputValue::Object(entries.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}
