//! Maps by target as lists of pairs.
//!
//! Rule: JSON names the entries of a map by strings alone, and a target is not a string.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use kode_base::ids::TurnId;
use kode_base::paths::Target;

/// A map by target.
pub(super) fn serialize<T: Serialize, S: Serializer>(
    map: &BTreeMap<Target, T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(map)
}

/// A map by target.
pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<Target, T>, D::Error> {
    Ok(Vec::deserialize(deserializer)?.into_iter().collect())
}

/// Maps by target, each by its turn.
pub(super) mod by_turn {
    use super::{BTreeMap, Deserialize, Deserializer, Serialize, Serializer, Target, TurnId};

    /// Maps by target, each by its turn.
    pub(in crate::edit::ledger) fn serialize<T: Serialize, S: Serializer>(
        map: &BTreeMap<TurnId, BTreeMap<Target, T>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(turn, files)| (turn, files.iter().collect::<Vec<_>>())))
    }

    /// Maps by target, each by its turn.
    pub(in crate::edit::ledger) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<TurnId, BTreeMap<Target, T>>, D::Error> {
        let turns = BTreeMap::<TurnId, Vec<(Target, T)>>::deserialize(deserializer)?;
        Ok(turns.into_iter().map(|(turn, files)| (turn, files.into_iter().collect())).collect())
    }
}
