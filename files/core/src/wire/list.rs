//! Lists whose length is bounded while they are decoded: a longer one is refused at the first
//! element too many, before the others are read or stored.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Elements that a list has room for before the first one is decoded. A forged length must not
/// allocate more.
const FIRST_ROOM: usize = 64;

struct List<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for List<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let length = elements.size_hint().unwrap_or_default();
        if length > MOST {
            return Err(A::Error::invalid_length(length, &self));
        }
        let mut list = Vec::with_capacity(length.min(FIRST_ROOM));
        while let Some(element) = elements.next_element()? {
            if list.len() == MOST {
                return Err(A::Error::invalid_length(MOST + 1, &self));
            }
            list.push(element);
        }
        Ok(list)
    }
}

/// Decodes a list of at most `MOST` elements.
pub(super) fn list<'de, D, T, const MOST: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(List::<T, MOST>(PhantomData))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static DECODED: Cell<usize> = const { Cell::new(0) };
    }

    /// An element that counts how often one is decoded, and takes no byte.
    struct Counted;

    impl<'de> Deserialize<'de> for Counted {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            <()>::deserialize(deserializer)?;
            DECODED.set(DECODED.get() + 1);
            Ok(Self)
        }
    }

    #[derive(serde::Deserialize)]
    struct Short(#[serde(deserialize_with = "list::<_, _, 3>")] Vec<Counted>);

    #[test]
    fn a_list_is_refused_at_the_first_element_too_many() {
        // The elements take no bytes, so the length is all there is.
        let of = |length: u64| postcard::to_allocvec(&length).unwrap();
        assert_eq!(postcard::from_bytes::<Short>(&of(3)).unwrap().0.len(), 3);
        for length in [4, 1 << 60] {
            DECODED.set(0);
            assert!(postcard::from_bytes::<Short>(&of(length)).is_err());
            assert!(DECODED.get() <= 4);
        }
    }
}
