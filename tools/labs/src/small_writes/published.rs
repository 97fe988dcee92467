//! What did others measure?
//!
//! Source: published numbers F. A thousand exchanges of 64 bytes between two hosts, reported in January 2008 by the author
//! of a distributed file system; both were virtual machines, so that even a whole exchange took 1.43 ms.

/// A variant as it was measured then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Published {
    /// Its name here.
    pub(super) variant: &'static str,
    /// Milliseconds of a thousand exchanges.
    pub(super) per_thousand: f64,
}

/// All of them.
pub(super) const IN_2008: [Published; 4] = [
    Published { variant: "tcp whole", per_thousand: 1_430.0 },
    Published { variant: "tcp split", per_thousand: 40_430.0 },
    Published { variant: "tcp receive split", per_thousand: 1_430.0 },
    Published { variant: "tcp both split", per_thousand: 40_430.0 },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::small_writes::Variant;

    #[test]
    fn they_are_variants_of_ours() {
        assert!(IN_2008.iter().all(|each| Variant::named(each.variant).is_some()));
    }
}
