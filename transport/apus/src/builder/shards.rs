//! The option for the number of shards of an endpoint, and its text form.

/// The number of shards of an endpoint
/// ([`EndpointBuilder::shards`](crate::EndpointBuilder::shards)). The default is 1.
///
/// As text it is a number or `auto`; with the feature `serde`, a number or the text `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shards {
    /// This number: 1 to [`Shards::MAX`]; values outside count as the nearest.
    Count(usize),
    /// One for each core that the process may use, by its affinity mask and the quota of its
    /// cgroup, and 8 at most.
    Auto,
}

impl Shards {
    /// The largest number of shards.
    pub const MAX: usize = 64;

    /// The largest number that [`Shards::Auto`] chooses. Chosen by us: each shard has its own
    /// socket and buffers, and eight carry more than one network interface.
    const MAX_AUTO: usize = 8;

    /// Returns the number, at least 1.
    #[must_use]
    pub fn count(self) -> usize {
        match self {
            Self::Count(count) => count.clamp(1, Self::MAX),
            // Respects both the mask and the quota. It fails only if the system does not report
            // them.
            Self::Auto => std::thread::available_parallelism()
                .map_or(1, |cores| cores.get().min(Self::MAX_AUTO)),
        }
    }
}

impl Default for Shards {
    fn default() -> Self {
        Self::Count(1)
    }
}

impl From<usize> for Shards {
    fn from(count: usize) -> Self {
        Self::Count(count)
    }
}

impl std::str::FromStr for Shards {
    type Err = ParseShardsError;

    /// Parses `auto` or a number from 1 to [`Shards::MAX`].
    fn from_str(text: &str) -> Result<Self, ParseShardsError> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let count = text.parse().ok().filter(|count| (1..=Self::MAX).contains(count));
        count.map(Self::Count).ok_or(ParseShardsError)
    }
}

impl std::fmt::Display for Shards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Auto => f.pad("auto"),
        }
    }
}

/// The error for a text that is no number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the number of shards is 1 to {max}, or `auto`; try 2", max = Shards::MAX)]
pub struct ParseShardsError;

#[cfg(feature = "serde")]
mod text {
    //! Numbers are numbers in configuration files, and `auto` is text.

    use super::Shards;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Number(u64),
        Text(String),
    }

    impl Serialize for Shards {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self {
                Self::Count(count) => Form::Number(*count as u64),
                Self::Auto => Form::Text(self.to_string()),
            }
            .serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for Shards {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = match Form::deserialize(deserializer)? {
                Form::Number(count) => count.to_string(),
                Form::Text(text) => text,
            };
            text.parse().map_err(serde::de::Error::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_values_agree() {
        for text in ["1", "8", "64", "auto"] {
            assert_eq!(text.parse::<Shards>().unwrap().to_string(), text);
        }
        for text in ["", "0", "65", "-1", "Auto", "two"] {
            assert_eq!(text.parse::<Shards>(), Err(ParseShardsError), "{text}");
        }
    }

    #[test]
    fn there_is_at_least_one_and_auto_is_bounded() {
        assert_eq!(Shards::from(0).count(), 1);
        assert_eq!(Shards::from(1_000).count(), Shards::MAX);
        assert!((1..=8).contains(&Shards::Auto.count()));
    }
}
