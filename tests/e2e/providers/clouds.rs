//! Models on the servers of clouds: the same conversations, by other addresses, keys and frames.
//!
//! Rule: the server refuses what the cloud would: a missing version, a model in the body, a wrong signature or key.

use std::fs;

use kode_e2e::{Client, Offer, Project, Script, say, step};
use serde_json::{Value, json};

use super::{Wire, answer, read};

/// The identity whose signatures the scripted model takes.
const AWS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
];

fn project() -> Project {
    let thinking = || step().thinking("I look.").call("Read", read("a.txt"));
    let project = Project::new(&Script::new([thinking(), say("It says: {{last_result}}")]));
    project.write("a.txt", "the text\n");
    project
}

fn connect(project: &Project, profile: Value, variables: &[(&str, &str)]) -> Client {
    let client = project.start_as(&[], variables);
    client.initialize(Offer::kode().options(json!({ "model": profile })).params(&project.workspace()));
    client
}

/// Runs a turn with a read over a cloud, which must work; gives the requests with their paths.
fn reads(profile: Value, variables: &[(&str, &str)]) -> Vec<Value> {
    let project = project();
    let mut profile = profile;
    profile["baseUrl"] =
        json!(profile["baseUrl"].as_str().unwrap_or("{}").replace("{}", project.model.base_url()));
    let client = connect(&project, profile.clone(), variables);
    let text = answer(&client.session(), "read it", Wire::Messages);
    assert!(text.contains("the text"), "{profile}: {text}");
    assert_eq!(project.model.refusals(), Vec::<Value>::new(), "{profile}");
    project.model.recorded()
}

fn paths(requests: &[Value]) -> Vec<&str> {
    requests.iter().filter_map(|request| request["path"].as_str()).collect()
}

fn bedrock() -> Value {
    json!({ "provider": "bedrock", "model": "us.anthropic.claude-sonnet-5-v1:0", "region": "us-east-1" })
}

#[test]
fn claude_on_bedrock_is_asked_with_a_token() {
    let mut profile = bedrock();
    profile["apiKeyEnv"] = json!("BEDROCK_TOKEN");
    let asked = reads(profile, &[("BEDROCK_TOKEN", "test-token")]);
    let path = "/model/us.anthropic.claude-sonnet-5-v1%3A0/invoke-with-response-stream";
    assert_eq!(paths(&asked), [path, path]);
    let body = &asked[0]["body"];
    assert!(body["model"].is_null() && body["stream"].is_null(), "{body}");
    assert_eq!(body["anthropic_version"], "bedrock-2023-05-31");
}

#[test]
fn claude_on_bedrock_is_asked_with_signed_requests() {
    reads(bedrock(), &AWS);
    let temporary = [AWS[0], AWS[1], ("AWS_SESSION_TOKEN", "token")];
    reads(bedrock(), &temporary);
}

#[test]
fn an_aws_profile_of_the_shared_files_signs_requests() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credentials");
    let keys = AWS.map(|(name, value)| format!("{} = {value}\n", name.to_lowercase())).concat();
    fs::write(&file, format!("[default]\naws_access_key_id = OTHER\n\n[work]\n{keys}")).unwrap();
    let mut profile = bedrock();
    profile["awsProfile"] = json!("work");
    reads(profile, &[("AWS_SHARED_CREDENTIALS_FILE", file.to_str().unwrap())]);
}

#[test]
fn a_wrong_identity_is_reported_without_its_secret() {
    let project = project();
    let mut profile = bedrock();
    profile["baseUrl"] = json!(project.model.base_url());
    let wrong = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "wrong-secret")];
    let client = connect(&project, profile, &wrong);
    let session = client.session();
    assert_eq!(session.run("read it")["stopReason"], "error");
    let notice = session.notices().pop().unwrap().to_string();
    assert!(notice.contains("403") && !notice.contains("wrong-secret"), "{notice}");
}

#[test]
fn claude_and_gemini_on_vertex_are_asked_where_their_publishers_are() {
    let vertex =
        |model: &str| json!({ "provider": "vertex", "model": model, "project": "p", "apiKey": "test-token" });
    let asked = reads(vertex("claude-sonnet-5"), &[]);
    let path = "/v1/projects/p/locations/global/publishers/anthropic/models/claude-sonnet-5:streamRawPredict";
    assert_eq!(paths(&asked), [path, path]);
    assert_eq!(asked[0]["body"]["anthropic_version"], "vertex-2023-10-16");
    let asked = reads(vertex("gemini-3-test"), &[]);
    let path = "/v1/projects/p/locations/global/publishers/google/models/gemini-3-test:streamGenerateContent";
    assert_eq!(paths(&asked), [path, path]);
}

#[test]
fn the_token_of_vertex_comes_from_a_command() {
    let profile = json!({
        "provider": "vertex", "model": "claude-sonnet-5", "project": "p", "apiKeyHelper": "echo test-token",
    });
    reads(profile, &[]);
}

#[test]
fn deployments_on_azure_are_asked_by_both_formats() {
    let azure =
        json!({ "provider": "azure", "model": "gpt-test", "apiKey": "test-key", "baseUrl": "{}/openai" });
    assert_eq!(paths(&reads(azure.clone(), &[])), ["/openai/v1/responses"; 2]);
    let mut dated = azure;
    dated["apiVersion"] = json!("2024-10-21");
    assert_eq!(paths(&reads(dated, &[])), ["/openai/deployments/gpt-test/chat/completions"; 2]);
}
