//! Packages of an npm registry on this machine: versions, digests, limits.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::unpack::tests::packed;
use super::*;
use kode_base::paths::real_path;
use kode_testing::web::{Answer, Server};

/// A registry with one package, `tidy`, in these versions.
async fn registry(versions: &[&str], spoil: impl Fn(&mut Value), bytes: Vec<u8>) -> Server {
    let release = |version: &str| {
        let mut dist =
            json!({ "integrity": format!("sha512-{}", BASE64_STANDARD.encode(Sha512::digest(&bytes))) });
        spoil(&mut dist);
        (version.to_owned(), dist)
    };
    let releases: Arc<Vec<(String, Value)>> =
        Arc::new(versions.iter().map(|version| release(version)).collect());
    Server::start(move |asked| {
        if asked.uri().path() == "/tidy.tgz" {
            return Answer::new("application/octet-stream", bytes.clone());
        }
        let host = asked.headers()["host"].to_str().unwrap();
        let of = |(version, dist): &(String, Value)| {
            let mut dist = dist.clone();
            dist["tarball"] = json!(format!("http://{host}/tidy.tgz"));
            (version.clone(), json!({ "dist": dist }))
        };
        let versions: serde_json::Map<String, Value> = releases.iter().map(of).collect();
        let tags = json!({ "latest": "1.4.0", "next": "2.0.0-beta.1" });
        let document = json!({ "name": "tidy", "dist-tags": tags, "versions": versions });
        Answer::new("application/json", document.to_string())
    })
    .await
}

async fn fetched(server: &Server, wanted: Option<&str>) -> Result<(String, String), String> {
    let folder = tempfile::tempdir().unwrap();
    let into = AbsPath::new(real_path(folder.path()).unwrap()).unwrap().join("fetched");
    let version =
        fetch("tidy", wanted, Some(&server.url("")), &into).await.map_err(|error| error.to_string())?;
    Ok((version, std::fs::read_to_string(into.join("plugin.txt").as_path()).unwrap()))
}

fn package() -> Vec<u8> {
    packed(|archive| archive.file("package/plugin.txt", b"whole"))
}

#[tokio::test]
async fn the_version_that_is_wanted_is_fetched() {
    let versions = ["1.0.0", "1.4.0", "1.10.0", "2.0.0-beta.1", "nonsense"];
    let server = registry(&versions, |_| {}, package()).await;
    for (wanted, version) in [
        (None, "1.4.0"),
        (Some("next"), "2.0.0-beta.1"),
        (Some("1.0.0"), "1.0.0"),
        (Some("v1.0.0"), "1.0.0"),
        (Some("^1.0.0"), "1.10.0"),
        (Some("1"), "1.10.0"),
        (Some("1.x"), "1.10.0"),
        (Some("*"), "1.10.0"),
        (Some(""), "1.10.0"),
        (Some("~1.0"), "1.0.0"),
        (Some(">= 1.0.0 <1.10"), "1.4.0"),
        (Some("1.0 - 1.4"), "1.4.0"),
        (Some("^7 || <1.4"), "1.0.0"),
        (Some("^2.0.0-beta"), "2.0.0-beta.1"),
    ] {
        assert_eq!(
            fetched(&server, wanted).await,
            Ok((version.to_owned(), "whole".to_owned())),
            "{wanted:?}"
        );
    }
    for wanted in ["^3", "1.0.1", "none", ">=", "^2"] {
        let failed = fetched(&server, Some(wanted)).await.unwrap_err();
        assert!(failed.contains(&format!("no version of it that `{wanted}` fits")), "{failed}");
    }
}

#[tokio::test]
async fn bytes_that_the_digest_does_not_stand_for_are_not_unpacked() {
    let sha1 =
        |bytes: &[u8]| Sha1::digest(bytes).iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    let (right, wrong) = (sha1(&package()), sha1(b"other"));
    let strong = format!("sha512-{}", BASE64_STANDARD.encode(Sha512::digest(package())));
    let other = format!("sha512-{}", BASE64_STANDARD.encode(Sha512::digest(b"other")));
    for (dist, expected) in [
        (json!({ "integrity": format!("sha1-old {strong}?x"), "shasum": wrong }), Ok(())),
        (json!({ "integrity": format!("{other} {strong}") }), Ok(())),
        (json!({ "shasum": right }), Ok(())),
        (json!({ "integrity": other, "shasum": right }), Err("its content does not match")),
        (json!({ "shasum": wrong }), Err("its content does not match")),
        (json!({ "integrity": "sha1-old" }), Err("gives no digest of it")),
        (json!({}), Err("gives no digest of it")),
    ] {
        let server = registry(&["1.4.0"], |said| *said = dist.clone(), package()).await;
        match (fetched(&server, None).await, expected) {
            (Ok(_), Ok(())) => {}
            (Err(failed), Err(expected)) => assert!(failed.contains(expected), "{dist}: {failed}"),
            (found, _) => panic!("{dist}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn what_a_registry_answers_is_bounded_and_leads_nowhere_else() {
    for (answer, expected) in [
        (Answer::status(404), "the server answered 404"),
        (Answer::new("application/json", "<html>"), "cannot be read"),
        (Answer::redirect(302, "/tidy"), "more than 5 redirects"),
        (Answer::redirect(302, "http://registry.example/tidy"), "is not an `https://` address"),
        (Answer::redirect(302, "file:///etc/passwd"), "is not an `https://` address"),
        (Answer::status(302), "the server answered 302"),
        (Answer::new("application/json", vec![b' '; MAX_DOCUMENT + 1]), "larger than 33554432 bytes"),
    ] {
        let answer = Arc::new(answer);
        let server = Server::start(move |_| Answer {
            status: answer.status,
            headers: answer.headers.clone(),
            body: answer.body.clone(),
            is_endless: false,
        })
        .await;
        let failed = fetched(&server, None).await.unwrap_err();
        assert!(failed.contains(expected), "{expected} in {failed}");
    }
}

#[tokio::test]
async fn the_name_of_a_package_is_one_part_of_an_address() {
    for name in ["tidy", "@acme/tidy", "a.b_c-d~e", "-x"] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    for name in ["", "../x", "a/b", "@acme", "@acme/", "@/x", "@a/b/c", ".x", "_x", "x y", "x?y", "x%2fy"] {
        assert!(check_name(name).is_err(), "{name}");
    }
    let server = Server::start(|_| Answer::status(404)).await;
    let into = AbsPath::new("/nowhere").unwrap();
    fetch("@acme/tidy", None, Some(&server.url("/npm/")), &into).await.unwrap_err();
    assert_eq!(server.asked(), ["/npm/@acme%2ftidy"]);
    assert!(server.last_header("accept").unwrap().starts_with("application/vnd.npm.install-v1+json"));
}

#[test]
fn the_user_says_which_registry_is_asked() {
    let file = "; registry=https://comment.example\n@acme:registry = \"https://npm.acme.example/${TEAM}\"\n\
         registry=https://first.example\nregistry=https://second.example/\n";
    let none = |_: &str| None;
    let team = |name: &str| (name == "TEAM").then(|| "doors".to_owned());
    let all = |name: &str| match name {
        "npm_config_registry" => Some("https://variable.example".to_owned()),
        _ => team(name),
    };
    for (package, file, variable, expected) in [
        ("tidy", "", &none as &dyn Fn(&str) -> Option<String>, Ok(DEFAULT)),
        ("tidy", file, &none, Ok("https://second.example/")),
        ("tidy", file, &all, Ok("https://variable.example")),
        ("@acme/tidy", file, &all, Ok("https://npm.acme.example/doors")),
        ("@acme/tidy", file, &none, Err("names the variable `TEAM`")),
        ("@other/tidy", file, &none, Ok("https://second.example/")),
        ("tidy", "registry=http://plain.example", &none, Err("is not an `https://` address")),
        ("tidy", "registry=https://me:word@plain.example", &none, Err("a name or a password")),
    ] {
        match (registry_of(package, file, variable), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{package}"),
            (Err(failed), Err(expected)) => assert!(failed.contains(expected), "{failed}"),
            (found, _) => panic!("{package}: {found:?}"),
        }
    }
}
