//! Parameters that say where they are wrong.
//!
//! Rule: what cannot be read is answered like every other failure, with its kind and its path, and not by the service
//! with a bare text.

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;

use crate::convert::error::{self, RequestError};

/// Parameters as they came. Reading them never fails for the service; [`Params::read`] does, for the client.
#[derive(Debug)]
pub(crate) struct Params(Value);

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self)
    }
}

impl From<Value> for Params {
    fn from(params: Value) -> Self {
        Self(params)
    }
}

impl Params {
    /// The parameters as the type of the method.
    ///
    /// # Errors
    /// `invalidParams` with the path of the first that does not fit.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, RequestError> {
        serde_path_to_error::deserialize(self.0).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." { "" } else { &path };
            error::invalid_params(path, &error.inner().to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use kode_protocol as wire;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        let whole = json!({ "selection": { "type": "all" }, "action": "undo" });
        assert!(Params(whole).read::<wire::ResolveEditsParams>().is_ok());
        for (params, path) in [
            (json!({ "selection": { "type": "all" }, "action": "explode" }), "action"),
            (json!({ "selection": { "type": "some" }, "action": "undo" }), "selection.type"),
            (json!({ "selection": { "type": "hunks", "sessionId": "s" }, "action": "undo" }), "selection"),
            (json!({ "selection": {}, "action": "undo" }), "selection"),
            (json!({ "action": "undo" }), ""),
            (json!([]), ""),
        ] {
            let shown = params.to_string();
            let failure = Params(params).read::<wire::ResolveEditsParams>().unwrap_err();
            let data = failure.data.unwrap();
            assert_eq!((&data["kind"], &data["path"]), (&json!("invalidParams"), &json!(path)), "{shown}");
        }
    }
}
