//! Published times of a thousand exchanges, from 2008.

use std::sync::LazyLock;

use serde::Deserialize;

use apus_report::published::records;

/// A variant as it was measured then.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Published {
    /// Its name here.
    pub(super) variant: String,
    /// Milliseconds of a thousand exchanges.
    pub(super) per_thousand: f64,
}

/// All of them.
pub(super) static IN_2008: LazyLock<Vec<Published>> =
    LazyLock::new(|| records(include_str!("published.csv")));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::small_writes::Variant;

    #[test]
    fn they_are_variants_of_ours() {
        assert!(IN_2008.iter().all(|each| Variant::named(&each.variant).is_some()));
    }
}
