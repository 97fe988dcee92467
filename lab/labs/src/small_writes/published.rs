//! Published times per thousand exchanges, from 2008.

use std::sync::LazyLock;

use serde::Deserialize;

use apus_report::published::records;

/// The figure of a variant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Published {
    /// Its name here.
    pub(super) variant: String,
    /// Milliseconds per thousand exchanges.
    pub(super) per_thousand: f64,
}

/// All published figures.
pub(super) static IN_2008: LazyLock<Vec<Published>> =
    LazyLock::new(|| records(include_str!("published.csv")));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::small_writes::variant::Variant;

    #[test]
    fn published_variants_are_measured_here() {
        assert!(IN_2008.iter().all(|each| Variant::named(&each.variant).is_some()));
    }
}
