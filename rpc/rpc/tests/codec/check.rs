//! Properties of arbitrary bytes decoded as arguments or results.

use apus_rpc::Postcard;
use apus_rpc::typed::Codec;
use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;

/// Levels that a value may have: those of the codec, and the value of the whole message.
const MOST_LEVELS: usize = 129;

/// Elements without bytes that a message may have.
const FREE_ELEMENTS: usize = 4_096;

/// Every way in which a type can contain itself.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Nested {
    Leaf(u8),
    Newtype(Box<Nested>),
    Tuple(Box<Nested>, u8),
    Fields { inner: Box<Nested>, name: String },
    List(Vec<Nested>),
    Map(BTreeMap<u8, Nested>),
    Maybe(Option<Box<Nested>>),
    Wrapped(Wrapper),
    Units(Vec<Unit>),
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Wrapper(Option<Box<Nested>>);

/// A chain of options and newtypes alone.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Chain(Option<Box<Chain>>);

thread_local! {
    static UNITS: Cell<usize> = const { Cell::new(0) };
}

/// A value without bytes, which counts how often it is made.
#[derive(Debug, PartialEq, Serialize)]
struct Unit;

impl<'de> Deserialize<'de> for Unit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer)?;
        UNITS.with(|units| units.set(units.get() + 1));
        Ok(Self)
    }
}

impl Nested {
    /// Returns the number of enums on the longest way to a leaf.
    fn levels(&self) -> usize {
        let deepest = match self {
            Self::Leaf(_) | Self::Units(_) => 0,
            Self::Newtype(inner) | Self::Tuple(inner, _) | Self::Fields { inner, .. } => {
                inner.levels()
            }
            Self::List(list) => list.iter().map(Self::levels).max().unwrap_or(0),
            Self::Map(map) => map.values().map(Self::levels).max().unwrap_or(0),
            Self::Maybe(inner) | Self::Wrapped(Wrapper(inner)) => {
                inner.as_ref().map_or(0, |inner| inner.levels())
            }
        };
        deepest + 1
    }
}

/// Decodes bytes as recursive types. Values are bounded in depth and in number, and survive
/// encoding.
///
/// # Panics
///
/// If a bound is exceeded or a round trip changes something.
pub(crate) fn check(input: &[u8]) {
    UNITS.with(|units| units.set(0));
    if let Some(nested) = round_trip::<Nested>(input) {
        assert!(nested.levels() <= MOST_LEVELS, "{} levels", nested.levels());
    }
    round_trip::<Vec<Unit>>(input);
    round_trip::<Vec<Vec<Unit>>>(input);
    // Each of the three is decoded twice.
    let made = UNITS.with(Cell::get);
    assert!(made <= 6 * (input.len() + FREE_ELEMENTS + 1), "{made} of {}", input.len());
    round_trip::<Chain>(input);
    round_trip::<(u8, Option<Vec<Nested>>, [u16; 3])>(input);
}

fn round_trip<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(
    input: &[u8],
) -> Option<T> {
    let value: T = Postcard::decode(input).ok()?;
    let bytes = Postcard::encode(&value, Vec::new()).unwrap();
    assert_eq!(Postcard::decode::<T>(&bytes).unwrap(), value);
    Some(value)
}
