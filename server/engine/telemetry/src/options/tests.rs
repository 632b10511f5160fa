//! Tests of where sessions are exported to.
//!
//! Rule: variables are those of the test.

use serde_json::json;

use super::*;

type Variables = &'static [(&'static str, &'static str)];

fn read(setting: Option<Value>, variables: Variables) -> Result<Option<TelemetryOptions>, TelemetryError> {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    TelemetryOptions::read(setting.as_ref(), &variable)
}

fn addresses(setting: Option<Value>, variables: Variables) -> Vec<String> {
    read(setting, variables).unwrap().map(|options| options.addresses()).unwrap_or_default()
}

#[test]
fn nothing_is_exported_unless_a_collector_is_named() {
    let none: [String; 0] = [];
    for setting in [None, Some(json!({})), Some(json!(true)), Some(json!({ "content": true }))] {
        assert_eq!(addresses(setting, &[]), none);
    }
    assert_eq!(addresses(None, &[(ENDPOINT, " ")]), none);
    let endpoint = || Some(json!({ "endpoint": "http://127.0.0.1:4318" }));
    assert_eq!(addresses(endpoint(), &[(DISABLED, "true"), (ENDPOINT, "http://c:1")]), none);
    assert_eq!(addresses(endpoint(), &[(DISABLED, "false")]).len(), 2);
}

#[test]
fn addresses_are_those_of_the_standard() {
    let both = ["http://c:4318/v1/traces", "http://c:4318/v1/metrics"];
    assert_eq!(addresses(None, &[(ENDPOINT, "http://c:4318")]), both);
    assert_eq!(addresses(None, &[(ENDPOINT, "http://c:4318/")]), both);
    assert_eq!(addresses(None, &[(ENDPOINT, "http://c/otlp/")])[0], "http://c/otlp/v1/traces");
    let apart: Variables = &[(ENDPOINT, "http://c:4318"), (METRICS.variable, "https://m/own")];
    assert_eq!(addresses(None, apart), ["http://c:4318/v1/traces", "https://m/own"]);
    assert_eq!(addresses(None, &[(TRACES.variable, "http://t/spans")]), ["http://t/spans"]);
    let setting = Some(json!({ "endpoint": "http://s:1" }));
    assert_eq!(addresses(setting.clone(), &[])[0], "http://s:1/v1/traces");
    assert_eq!(addresses(setting, &[(ENDPOINT, "http://c:4318")]), both, "the process is nearer");
}

#[test]
fn an_address_for_people_holds_no_password() {
    let options = read(None, &[(ENDPOINT, "https://me:hunter2@c/?key=hunter3")]).unwrap().unwrap();
    let shown = options.addresses().join(" ");
    assert!(shown.contains("https://c/v1/traces") && !shown.contains("hunter"), "{shown}");
}

#[test]
fn headers_of_settings_stand_in_variables_and_go_nowhere_else() {
    let setting = || {
        Some(
            json!({ "endpoint": "http://s:1", "headers": { "x-key": { "fromEnv": "KEY" } }, "content": true }),
        )
    };
    let options = read(setting(), &[("KEY", "hunter2")]).unwrap().unwrap();
    assert_eq!(options.headers, [("x-key".to_owned(), Secret::new("hunter2"))]);
    assert_eq!(options.secrets(), [Secret::new("hunter2")]);
    assert!(options.exports_content() && !format!("{options:?}").contains("hunter2"));
    let elsewhere = read(setting(), &[("KEY", "hunter2"), (ENDPOINT, "http://c:1")]).unwrap().unwrap();
    assert_eq!(elsewhere.headers, []);
    assert!(matches!(read(setting(), &[]), Err(TelemetryError::MissingVariable { .. })));
    let written = Some(json!({ "endpoint": "http://s:1", "headers": { "x-key": "hunter2" } }));
    let error = read(written, &[]).unwrap_err();
    assert!(matches!(&error, TelemetryError::Setting(reason) if !reason.contains("hunter2")), "{error}");
}

#[test]
fn what_cannot_be_followed_is_an_error_without_the_text() {
    for (setting, variables) in [
        (Some(json!({ "endpoint": "ftp://hunter2" })), &[][..]),
        (Some(json!({ "endpoint": 7 })), &[]),
        (Some(json!({ "endpiont": "http://hunter2" })), &[]),
        (None, &[(ENDPOINT, "hunter2")]),
    ] {
        let error = read(setting, variables).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn time_limit_and_service_come_from_the_environment() {
    let of = |variables| read(Some(json!({ "endpoint": "http://s:1" })), variables).unwrap().unwrap();
    assert_eq!((of(&[]).timeout, of(&[]).service_is_named), (TIMEOUT, false));
    assert_eq!(of(&[(REQUEST_TIMEOUT, "250")]).timeout, Duration::from_millis(250));
    assert_eq!(of(&[(REQUEST_TIMEOUT, "soon")]).timeout, TIMEOUT);
    assert!(of(&[(SERVICE_NAME, "mine")]).service_is_named);
    assert!(of(&[(RESOURCE, "team=a, service.name=mine")]).service_is_named);
    assert!(!of(&[(RESOURCE, "team=a")]).service_is_named);
    assert!(of(&[(RESOURCE, "service.instance.id=1")]).instance_is_named);
}
