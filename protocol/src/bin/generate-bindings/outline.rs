//! The schema document as the printers need it: named types of four shapes, and the methods that use them.
//!
//! Rule: the one walk over the schema; a form that no printer could show is an error that says its place, and
//! is never guessed at.

use anyhow::{Context, bail};
use serde_json::{Map, Value};

/// Everything that is printed.
#[derive(Debug)]
pub(crate) struct Outline {
    /// The types, by name.
    pub(crate) definitions: Vec<Definition>,
    /// The requests of the client in the order of their table.
    pub(crate) requests: Vec<Method>,
    /// The requests of the server in the order of their table.
    pub(crate) server_requests: Vec<Method>,
    /// The notifications in the order of their table; they have no result.
    pub(crate) notifications: Vec<Method>,
}

/// A method.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) params: Type,
    /// `Null` for notifications as well.
    pub(crate) result: Type,
}

/// A named type.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) shape: Shape,
}

/// The form of a named type.
#[derive(Debug, PartialEq)]
pub(crate) enum Shape {
    /// Another name for a type.
    Alias(Type),
    /// One of some texts.
    Choice(Vec<Choice>),
    /// An object.
    Record(Vec<Field>),
    /// One of some objects, told apart by the text in `tag`.
    Union {
        /// The field that tells.
        tag: String,
        /// The cases.
        cases: Vec<Case>,
    },
}

/// A text of a choice.
#[derive(Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) doc: String,
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) value: Type,
    pub(crate) optional: bool,
}

/// A case of a union.
#[derive(Debug, PartialEq)]
pub(crate) struct Case {
    /// The content of the tag.
    pub(crate) value: String,
    pub(crate) doc: String,
    /// The named type whose fields it has.
    pub(crate) base: Option<String>,
    /// Its fields beside the tag and those of `base`.
    pub(crate) fields: Vec<Field>,
}

/// The content of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    /// Any JSON.
    Any,
    List(Box<Type>),
    Named(String),
}

impl Outline {
    /// Reads the schema document.
    ///
    /// # Errors
    /// At the first form that has no place in an outline.
    pub(crate) fn read(document: &Value) -> anyhow::Result<Self> {
        let section = |name: &str| document[name].as_object().with_context(|| format!("no `{name}`"));
        let definitions = section("$defs")?
            .iter()
            .map(|(name, schema)| definition(name, schema).with_context(|| format!("in the type `{name}`")));
        let methods = |name| -> anyhow::Result<Vec<Method>> {
            let methods = section(name)?.iter();
            methods.map(|(name, entry)| method(name, entry).with_context(|| format!("in `{name}`"))).collect()
        };
        Ok(Self {
            definitions: definitions.collect::<anyhow::Result<_>>()?,
            requests: methods("requests")?,
            server_requests: methods("serverRequests")?,
            notifications: methods("notifications")?,
        })
    }
}

fn method(name: &str, entry: &Value) -> anyhow::Result<Method> {
    let result = entry.get("result").map_or(Ok(Type::Null), value_type)?;
    Ok(Method { name: name.to_owned(), doc: doc(entry), params: value_type(&entry["params"])?, result })
}

fn definition(name: &str, schema: &Value) -> anyhow::Result<Definition> {
    let fields = fields(schema)?;
    let shape = match schema.get("oneOf").and_then(Value::as_array) {
        Some(cases) if cases.iter().all(|case| case["type"] == "string") => choice(cases)?,
        Some(cases) => union(cases, &fields)?,
        None if schema["type"] == "object" => Shape::Record(fields),
        None => Shape::Alias(value_type(schema)?),
    };
    Ok(Definition { name: name.to_owned(), doc: doc(schema), shape })
}

fn choice(cases: &[Value]) -> anyhow::Result<Shape> {
    let choices = cases.iter().map(|case| {
        let value = text(case, "const").with_context(|| format!("no `const` in {case}"))?;
        Ok(Choice { value, doc: doc(case) })
    });
    Ok(Shape::Choice(choices.collect::<anyhow::Result<_>>()?))
}

/// Reads a union; `common` are fields that all its cases have.
fn union(cases: &[Value], common: &[Field]) -> anyhow::Result<Shape> {
    let tag = cases.first().and_then(tag_of).with_context(|| "a union without a tag")?;
    let cases = cases.iter().map(|case| {
        if tag_of(case).as_ref() != Some(&tag) {
            bail!("a case without the tag `{tag}`: {case}");
        }
        let value = text(&case["properties"][&tag], "const").with_context(|| format!("no tag in {case}"))?;
        let base = case.get("$ref").map(named).transpose()?;
        let mut fields = fields(case)?;
        fields.retain(|field| field.name != tag);
        fields.extend_from_slice(common);
        Ok(Case { value, doc: doc(case), base, fields })
    });
    Ok(Shape::Union { cases: cases.collect::<anyhow::Result<_>>()?, tag })
}

/// The field that holds a constant.
fn tag_of(case: &Value) -> Option<String> {
    let fields = case["properties"].as_object()?;
    fields.iter().find(|(_, field)| field.get("const").is_some()).map(|(name, _)| name.clone())
}

fn fields(schema: &Value) -> anyhow::Result<Vec<Field>> {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let none = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&none).iter();
    fields
        .map(|(name, field)| {
            Ok(Field {
                name: name.clone(),
                doc: doc(field),
                value: value_type(field).with_context(|| format!("in the field `{name}`"))?,
                optional: !required.iter().any(|required| required == name.as_str()),
            })
        })
        .collect()
}

fn value_type(schema: &Value) -> anyhow::Result<Type> {
    if let Some(reference) = schema.get("$ref") {
        return named(reference).map(Type::Named);
    }
    Ok(match schema.get("type").map(|name| name.as_str().unwrap_or_default()) {
        Some("null") => Type::Null,
        Some("boolean") => Type::Boolean,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("string") => Type::String,
        Some("array") => Type::List(Box::new(value_type(&schema["items"])?)),
        None if says_nothing(schema) => Type::Any,
        _ => bail!("no printer knows the form {schema}; give it a name or teach the outline"),
    })
}

/// Whether a schema allows everything.
fn says_nothing(schema: &Value) -> bool {
    match schema {
        Value::Bool(allowed) => *allowed,
        Value::Object(schema) => schema.keys().all(|key| key == "description" || key == "default"),
        _ => false,
    }
}

fn named(reference: &Value) -> anyhow::Result<String> {
    let name = reference.as_str().and_then(|reference| reference.strip_prefix("#/$defs/"));
    name.map(str::to_owned).with_context(|| format!("{reference} is no reference to a definition"))
}

fn doc(schema: &Value) -> String {
    text(schema, "description").unwrap_or_default()
}

fn text(schema: &Value, key: &str) -> Option<String> {
    schema.get(key)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shape(schema: Value) -> anyhow::Result<Shape> {
        definition("X", &schema).map(|definition| definition.shape)
    }

    fn field(name: &str, value: Type, optional: bool) -> Field {
        Field { name: name.into(), doc: String::new(), value, optional }
    }

    #[test]
    fn fields_of_all_cases_are_in_each_of_them() {
        let tagged = |value: &str| json!({ "properties": { "kind": { "type": "string", "const": value } } });
        let mut with_base = tagged("b");
        with_base["$ref"] = json!("#/$defs/B");
        let schema = json!({
            "type": "object",
            "properties": { "hint": { "type": "string" } },
            "required": ["hint"],
            "oneOf": [tagged("a"), with_base],
        });
        let case = |value: &str, base: Option<&str>| Case {
            value: value.into(),
            doc: String::new(),
            base: base.map(str::to_owned),
            fields: vec![field("hint", Type::String, false)],
        };
        let cases = vec![case("a", None), case("b", Some("B"))];
        assert_eq!(shape(schema).unwrap(), Shape::Union { tag: "kind".into(), cases });
    }

    #[test]
    fn what_has_no_name_or_may_be_null_is_an_error_and_never_any() {
        for value in [
            json!({ "type": ["string", "null"] }),
            json!({ "anyOf": [{ "type": "string" }] }),
            json!({ "type": "object" }),
            json!({ "$ref": "other.json" }),
            json!(false),
        ] {
            let schema = json!({ "type": "object", "properties": { "here": value } });
            let error = format!("{:#}", shape(schema).unwrap_err());
            assert!(error.contains("`here`"), "{error}");
        }
    }

    #[test]
    fn absent_fields_and_any_json_are_distinguished_from_the_rest() {
        let schema = json!({
            "type": "object",
            "properties": { "input": { "description": "d" }, "rest": { "type": "array", "items": true } },
            "required": ["input"],
        });
        let Shape::Record(fields) = shape(schema).unwrap() else { panic!("no record") };
        assert_eq!(fields[0], Field { doc: "d".into(), ..field("input", Type::Any, false) });
        assert_eq!(fields[1], field("rest", Type::List(Box::new(Type::Any)), true));
    }
}
