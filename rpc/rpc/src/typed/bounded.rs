//! Decoding within limits: a deserializer around another one that bounds the depth and the work.
//!
//! A peer's message determines how deep a value nests and how many elements its lists have. Without
//! limits, 100 kB of nested boxes overflow the stack, both when they are decoded and when they are
//! dropped, and a list of units whose length is 2^60 takes ten bytes and years.
//!
//! - No value nests deeper than [`MAX_DEPTH`] below the value of the whole message. The limit
//!   applies to the values that are made, so that dropping them is safe as well.
//! - All lists and maps of a message together have at most one element per byte, plus
//!   [`FREE_ELEMENTS`].
//!
//! Scalars pass through with the visitor of the type; only nested values are wrapped.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use std::cell::Cell;
use std::fmt;

/// Maximum nesting of a value inside of the value of the message: structs, tuples, enums, lists and
/// maps. An option or a newtype counts only directly inside of another one. Chosen by us: the limit
/// of serde_json; deeper values are lists that should be `Vec`.
pub(super) const MAX_DEPTH: u32 = 128;

/// Elements without bytes that a message may have: units, or structs without fields. Chosen by us:
/// their work is a few microseconds, the order of the message's own costs.
pub(super) const FREE_ELEMENTS: usize = 4_096;

/// The limit that a message exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exceeded {
    Depth,
    Elements,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth => write!(f, "the value nests deeper than {MAX_DEPTH}"),
            Self::Elements => {
                f.write_str("the lists have more elements than the message has bytes")
            }
        }
    }
}

/// The limits of one message.
pub(super) struct Limits {
    elements_left: Cell<usize>,
    exceeded: Cell<Option<Exceeded>>,
}

impl Limits {
    /// Returns the limits of a message of `length` bytes.
    pub(super) const fn new(length: usize) -> Self {
        let elements_left = Cell::new(length.saturating_add(FREE_ELEMENTS));
        Self { elements_left, exceeded: Cell::new(None) }
    }

    /// Returns the limit that was exceeded. A type may have ignored the error.
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded.get()
    }

    fn exceed<E: Error>(&self, limit: Exceeded) -> E {
        self.exceeded.set(Some(limit));
        E::custom(limit)
    }

    /// Counts an element of a list or a map.
    fn count_element<E: Error>(&self) -> Result<(), E> {
        match self.elements_left.get().checked_sub(1) {
            Some(left) => {
                self.elements_left.set(left);
                Ok(())
            }
            None => Err(self.exceed(Exceeded::Elements)),
        }
    }
}

/// The place of a value in its message.
#[derive(Clone, Copy)]
struct Place<'l> {
    limits: &'l Limits,
    depth: u32,
    /// Whether the value is the content of an option or a newtype.
    wrapped: bool,
}

impl Place<'_> {
    /// Returns the place of values inside of a container here.
    fn inside<E: Error>(self) -> Result<Self, E> {
        if self.depth > MAX_DEPTH {
            return Err(self.limits.exceed(Exceeded::Depth));
        }
        Ok(Self { depth: self.depth + 1, wrapped: false, ..self })
    }

    /// Returns the place of the content of an option or a newtype here.
    fn unwrapped<E: Error>(self) -> Result<Self, E> {
        let place = if self.wrapped { self.inside()? } else { self };
        Ok(Self { wrapped: true, ..place })
    }
}

/// A deserializer, a seed, or access to elements, within limits.
pub(super) struct Bounded<'l, T> {
    inner: T,
    place: Place<'l>,
    /// Whether the number of elements is the message's: a list or a map, not a struct or a tuple.
    counts: bool,
}

impl<'l, D> Bounded<'l, D> {
    /// Returns a deserializer of a whole message.
    pub(super) const fn new(inner: D, limits: &'l Limits) -> Self {
        Self::at(inner, Place { limits, depth: 0, wrapped: false })
    }

    const fn at(inner: D, place: Place<'l>) -> Self {
        Self { inner, place, counts: false }
    }
}

/// A visitor of a value within limits; `place` is the place of the values inside.
struct Inside<'l, V> {
    visitor: V,
    place: Place<'l>,
    counts: bool,
}

/// Methods that pass the visitor of the type on.
macro_rules! scalars {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method(visitor)
        })*
    };
}

/// Methods of containers whose number of elements is known from the type.
macro_rules! containers {
    ($($method:ident($($name:ident: $kind:ty),*), counts: $counts:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(
            self,
            $($name: $kind,)*
            visitor: V,
        ) -> Result<V::Value, D::Error> {
            let place = self.place.inside()?;
            self.inner.$method($($name,)* Inside { visitor, place, counts: $counts })
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Bounded<'_, D> {
    type Error = D::Error;

    scalars! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit
        deserialize_identifier
    }

    containers! {
        deserialize_any(), counts: true;
        deserialize_ignored_any(), counts: true;
        deserialize_seq(), counts: true;
        deserialize_map(), counts: true;
        deserialize_tuple(length: usize), counts: false;
        deserialize_tuple_struct(name: &'static str, length: usize), counts: false;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]), counts: false;
        deserialize_enum(name: &'static str, variants: &'static [&'static str]), counts: false;
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let place = self.place.unwrapped()?;
        self.inner.deserialize_option(Inside { visitor, place, counts: false })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let place = self.place.unwrapped()?;
        self.inner.deserialize_newtype_struct(name, Inside { visitor, place, counts: false })
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Methods of a visitor for scalars.
macro_rules! visits {
    ($($method:ident $kind:ty;)*) => {
        $(fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.visitor.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Inside<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    visits! {
        visit_bool bool;
        visit_i8 i8;
        visit_i16 i16;
        visit_i32 i32;
        visit_i64 i64;
        visit_i128 i128;
        visit_u8 u8;
        visit_u16 u16;
        visit_u32 u32;
        visit_u64 u64;
        visit_u128 u128;
        visit_f32 f32;
        visit_f64 f64;
        visit_char char;
        visit_str &str;
        visit_borrowed_str &'de str;
        visit_string String;
        visit_bytes &[u8];
        visit_borrowed_bytes &'de [u8];
        visit_byte_buf Vec<u8>;
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, content: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Bounded::at(content, self.place))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, content: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(Bounded::at(content, self.place))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        let Self { visitor, place, counts } = self;
        visitor.visit_seq(Bounded { inner: elements, place, counts })
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        let Self { visitor, place, counts } = self;
        visitor.visit_map(Bounded { inner: entries, place, counts })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, value: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(Bounded::at(value, self.place))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Bounded<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Bounded::at(deserializer, self.place))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let element = self.inner.next_element_seed(Bounded::at(seed, self.place))?;
        if self.counts && element.is_some() {
            self.place.limits.count_element()?;
        }
        Ok(element)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let key = self.inner.next_key_seed(Bounded::at(seed, self.place))?;
        if self.counts && key.is_some() {
            self.place.limits.count_element()?;
        }
        Ok(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(Bounded::at(seed, self.place))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, 'l, A: EnumAccess<'de>> EnumAccess<'de> for Bounded<'l, A> {
    type Error = A::Error;
    type Variant = Bounded<'l, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.inner.variant_seed(seed)?;
        Ok((value, Bounded::at(variant, self.place)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.newtype_variant_seed(Bounded::at(seed, self.place))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.inner.tuple_variant(length, Inside { visitor, place: self.place, counts: false })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.inner.struct_variant(fields, Inside { visitor, place: self.place, counts: false })
    }
}
