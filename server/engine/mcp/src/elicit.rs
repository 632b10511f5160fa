//! Questions of servers to the user: a form, asked as any other question is.
//!
//! Rule: the user sees which server asks; an answer is sent only when the user gave one and it fits the form, and
//! what they leave open is left out.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Number, Value};

use kode_base::question::{Inquiry, InquiryAnswer, QuestionDraft, QuestionKind, QuestionOption, Reply};
use kode_config::mcp::fault::bounded;

/// The most fields of a form.
const MAX_FIELDS: usize = 64;
/// The most choices of a field.
const MAX_CHOICES: usize = 50;
/// The longest heading of a question.
const MAX_HEADER: usize = 24;
/// The value for leaving a field open.
const LEFT_OPEN: &str = "Leave it open";
/// The choices of a switch.
const YES: &str = "Yes";
const NO: &str = "No";
/// The choice of a form without fields.
const ACCEPT: &str = "Go on";

/// A form to be filled in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ElicitForm {
    message: String,
    fields: Vec<FormField>,
}

/// A field of it.
#[derive(Clone, Debug, PartialEq)]
struct FormField {
    name: String,
    label: String,
    description: String,
    required: bool,
    kind: FieldKind,
    default: Option<Value>,
}

#[derive(Clone, Debug, PartialEq)]
enum FieldKind {
    Text,
    Number,
    Integer,
    Switch,
    /// One of these; the value that is sent, and its label.
    One(Vec<(String, String)>),
    Several(Vec<(String, String)>),
}

impl ElicitForm {
    /// The form that a server asks to be filled in.
    ///
    /// # Errors
    /// Why it is no form, or none that people can fill in.
    pub(crate) fn of(server: &str, request: &ElicitRequestParams) -> Result<Self, String> {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return Err("it is no form".to_owned());
        };
        let schema = serde_json::to_value(requested_schema).map_err(|error| error.to_string())?;
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let properties = schema["properties"].as_object().ok_or("the form has no `properties`")?;
        if properties.len() > MAX_FIELDS {
            return Err(format!("the form has {} fields, and the limit is {MAX_FIELDS}", properties.len()));
        }
        let order = requested_schema.property_order.clone();
        let names = order.unwrap_or_else(|| properties.keys().cloned().collect());
        let field = |name: String| {
            let unusable = || format!("the field `{}` has a type that cannot be asked for", bounded(&name));
            let property = properties.get(&name).ok_or_else(unusable)?;
            let text = |key: &str| property[key].as_str().map(bounded);
            let label = text("title").unwrap_or_else(|| name.clone());
            Ok(FormField {
                label,
                description: text("description").unwrap_or_default(),
                required: required.iter().any(|required| required.as_str() == Some(&name)),
                kind: kind(property).ok_or_else(unusable)?,
                default: property.get("default").cloned(),
                name,
            })
        };
        let fields = names.into_iter().map(field).collect::<Result<Vec<_>, String>>()?;
        Ok(Self { message: format!("The MCP server `{server}` asks: {}", bounded(message)), fields })
    }

    /// The form as a question.
    pub(crate) fn draft(&self) -> QuestionDraft {
        let choice = QuestionOption::new;
        let mut questions: Vec<_> = self
            .fields
            .iter()
            .enumerate()
            .map(|(at, field)| {
                let asked = match field.description.as_str() {
                    "" => field.label.clone(),
                    description => format!("{}: {description}", field.label),
                };
                let question = if at == 0 { format!("{}\n{asked}", self.message) } else { asked };
                let mut options: Vec<_> = field.choices().iter().map(|shown| choice(shown, "")).collect();
                if let Some(default) = field.default.as_ref().map(shown_value)
                    && options.is_empty()
                    && !default.is_empty()
                {
                    options.push(choice(&default, "as the server suggests"));
                }
                if !field.required {
                    options.push(choice(LEFT_OPEN, ""));
                }
                let header = field.label.chars().take(MAX_HEADER).collect();
                let multi_select = matches!(field.kind, FieldKind::Several(_));
                Inquiry { question, header, options, multi_select }
            })
            .collect();
        if questions.is_empty() {
            let options = vec![choice(ACCEPT, "")];
            let (question, header) = (self.message.clone(), "MCP".to_owned());
            questions.push(Inquiry { question, header, options, multi_select: false });
        }
        QuestionDraft::new(QuestionKind::Choice, questions)
    }

    /// The answer to the server.
    pub(crate) fn result(&self, reply: Option<&Reply>) -> ElicitResult {
        let Some(reply) = reply else { return ElicitResult::new(ElicitationAction::Cancel) };
        let Some(answers) = &reply.answers else { return ElicitResult::new(ElicitationAction::Decline) };
        let mut content = Map::new();
        for (field, picked) in self.fields.iter().zip(answers) {
            match field.value(picked) {
                Some(value) => drop(content.insert(field.name.clone(), value)),
                // An unreadable answer is no answer.
                None if field.required => return ElicitResult::new(ElicitationAction::Decline),
                None => {}
            }
        }
        ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content))
    }
}

impl FormField {
    fn choices(&self) -> Vec<String> {
        match &self.kind {
            FieldKind::Text | FieldKind::Number | FieldKind::Integer => Vec::new(),
            FieldKind::Switch => vec![YES.to_owned(), NO.to_owned()],
            FieldKind::One(choices) | FieldKind::Several(choices) => {
                choices.iter().map(|(_, shown)| shown.clone()).collect()
            }
        }
    }

    fn value(&self, picked: &InquiryAnswer) -> Option<Value> {
        let label = picked.labels.first().map(String::as_str);
        if label == Some(LEFT_OPEN) {
            return None;
        }
        let said = picked.words().or(label)?;
        let chosen = |choices: &[(String, String)], said: &str| {
            let found = choices.iter().find(|(value, shown)| shown == said || value == said);
            found.map(|(value, _)| Value::String(value.clone()))
        };
        match &self.kind {
            FieldKind::Text => Some(Value::String(said.to_owned())),
            FieldKind::Number => said.trim().parse().ok().and_then(Number::from_f64).map(Value::Number),
            FieldKind::Integer => said.trim().parse::<i64>().ok().map(Value::from),
            FieldKind::Switch => match said.trim().to_lowercase().as_str() {
                "yes" | "true" | "y" => Some(Value::Bool(true)),
                "no" | "false" | "n" => Some(Value::Bool(false)),
                _ => None,
            },
            FieldKind::One(choices) => chosen(choices, said),
            FieldKind::Several(choices) => {
                let several = picked.labels.iter().filter_map(|label| chosen(choices, label));
                Some(Value::Array(several.collect()))
            }
        }
    }
}

fn kind(property: &Value) -> Option<FieldKind> {
    let several = |items: &Value| choices(items).map(FieldKind::Several);
    match property["type"].as_str()? {
        "string" => Some(choices(property).map_or(FieldKind::Text, FieldKind::One)),
        "number" => Some(FieldKind::Number),
        "integer" => Some(FieldKind::Integer),
        "boolean" => Some(FieldKind::Switch),
        "array" => several(&property["items"]),
        _ => None,
    }
}

/// The values there are to choose from, with the label of each; `None` where anything can be written.
fn choices(property: &Value) -> Option<Vec<(String, String)>> {
    let titled = property["oneOf"].as_array().or(property["anyOf"].as_array());
    let choices: Vec<_> = match titled {
        Some(titled) => titled
            .iter()
            .filter_map(|one| {
                let value = one["const"].as_str()?;
                Some((value.to_owned(), one["title"].as_str().unwrap_or(value).to_owned()))
            })
            .collect(),
        None => {
            let names = property["enumNames"].as_array();
            let shown = |at: usize, value: &str| {
                let name = names.and_then(|names| names.get(at)?.as_str());
                name.unwrap_or(value).to_owned()
            };
            let values = property["enum"].as_array()?.iter().filter_map(Value::as_str).enumerate();
            values.map(|(at, value)| (value.to_owned(), shown(at, value))).collect()
        }
    };
    (!choices.is_empty() && choices.len() <= MAX_CHOICES).then_some(choices)
}

fn shown_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> ElicitForm {
        let request = json!({
            "mode": "form", "message": "Who are you?",
            "requestedSchema": {
                "type": "object", "required": ["name", "color"],
                "properties": {
                    "name": { "type": "string", "title": "Name" },
                    "color": { "type": "string", "enum": ["r", "b"], "enumNames": ["red", "blue"] },
                    "age": { "type": "integer" },
                    "sure": { "type": "boolean" },
                },
            },
        });
        ElicitForm::of("survey", &serde_json::from_value(request).unwrap()).unwrap()
    }

    fn picked(label: &str, text: &str) -> InquiryAnswer {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        InquiryAnswer { labels: some(label).into_iter().collect(), text: some(text) }
    }

    fn reply(answers: Vec<InquiryAnswer>) -> Reply {
        Reply { answers: Some(answers), by: "test".into(), ..Reply::default() }
    }

    #[test]
    fn a_form_is_asked_field_by_field_and_says_who_asks() {
        let draft = form().draft();
        assert_eq!(draft.questions.len(), 4);
        assert!(draft.questions[0].question.contains("`survey` asks: Who are you?"));
        let color = draft.questions.iter().find(|asked| asked.header == "color").unwrap();
        let labels: Vec<_> = color.options.iter().map(|option| option.label.as_str()).collect();
        assert_eq!(labels, ["red", "blue"]);
    }

    #[test]
    fn answers_become_values_and_what_is_left_open_is_left_out() {
        let form = form();
        let by_name = |name: &str| match name {
            "name" => picked("", "Ada"),
            "color" => picked("blue", ""),
            "sure" => picked(YES, ""),
            _ => picked(LEFT_OPEN, ""),
        };
        let answers = form.fields.iter().map(|field| by_name(&field.name)).collect();
        let result = form.result(Some(&reply(answers)));
        assert_eq!(result.action, ElicitationAction::Accept);
        assert_eq!(result.content, Some(json!({ "name": "Ada", "color": "b", "sure": true })));
    }

    #[test]
    fn no_answer_is_none_and_a_refusal_is_one() {
        let form = form();
        assert_eq!(form.result(None).action, ElicitationAction::Cancel);
        let refused = Reply { answers: None, by: "test".into(), ..Reply::default() };
        assert_eq!(form.result(Some(&refused)).action, ElicitationAction::Decline);
        let unreadable = form.fields.iter().map(|_| picked("", "?")).collect();
        let result = form.result(Some(&reply(unreadable)));
        assert_eq!((result.action, result.content), (ElicitationAction::Decline, None), "`?` is no color");
    }
}
