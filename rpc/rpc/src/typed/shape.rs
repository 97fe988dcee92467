//! The shape of a type: a hash of its serde structure, so that client and server can detect
//! differing types.
//!
//! The type is deserialized from a probe that supplies no data, once per enum variant. The hash
//! covers the kinds of values, and the names and order of fields and variants. The walk stops at
//! six nested optional values or lists, which also ends recursive types, and after 10,000 values. A
//! type that rejects the probe's value (such as an address in text form) ends the walk there. The
//! walk is deterministic, so equal types have equal hashes; different types have different hashes,
//! unless they first differ after such an end.
//!
//! Rationale: postcard does not describe itself, so a changed field would be read as another one. A
//! hash of the types as written does not see changes in other modules; a version number that a
//! person raises is forgotten once. The types of a method therefore never change; a new method has
//! the new types.

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of values read of a type.
const MAX_VALUES: u32 = 10_000;

/// Maximum nesting of optional values, lists and maps.
const MAX_DEPTH: u32 = 6;

/// FNV-1a of 64 bits, folded.
pub(super) struct Hash(u64);

impl Hash {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }

    /// Adds text and a terminator that does not occur in text.
    pub(super) fn text(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.byte(byte));
        self.byte(0xff);
    }

    /// Returns a number that is not 0.
    pub(super) const fn finish(&self) -> u32 {
        let folded = (self.0 ^ (self.0 >> 32)) as u32;
        if folded == 0 { 1 } else { folded }
    }
}

/// Adds the shape of a type.
pub(super) fn hash_shape<T: for<'de> Deserialize<'de>>(hash: &mut Hash) {
    hash.text("type");
    let mut walk = Walk { hash, enums: BTreeMap::new(), values: 0 };
    loop {
        let before = walk.explored();
        if T::deserialize(Reader { walk: &mut walk, depth: 0 }).is_err() {
            walk.hash.text("refused");
        }
        if walk.explored() == before || walk.values >= MAX_VALUES {
            break;
        }
    }
}

/// State shared by the readers of a walk.
struct Walk<'a> {
    hash: &'a mut Hash,
    /// Number of explored variants of each enum.
    enums: BTreeMap<&'static str, usize>,
    values: u32,
}

impl Walk<'_> {
    fn explored(&self) -> usize {
        self.enums.values().sum()
    }

    fn value(&mut self, kind: &str) -> Result<(), Refused> {
        self.values += 1;
        self.hash.text(kind);
        if self.values > MAX_VALUES { Err(Refused) } else { Ok(()) }
    }
}

/// The type rejected the probe's value.
#[derive(Debug)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

impl serde::de::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// The probe: a deserializer without data.
struct Reader<'w, 'h> {
    walk: &'w mut Walk<'h>,
    depth: u32,
}

/// Supplies a number of values: elements, fields, or entries.
struct Elements<'w, 'h> {
    walk: &'w mut Walk<'h>,
    depth: u32,
    names: &'static [&'static str],
    left: usize,
}

impl Elements<'_, '_> {
    fn next<'de, S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refused> {
        seed.deserialize(Reader { walk: self.walk, depth: self.depth })
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, '_> {
    type Error = Refused;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Refused> {
        if self.left == 0 {
            return Ok(None);
        }
        if let Some(name) = self.names.len().checked_sub(self.left).map(|at| self.names[at]) {
            self.walk.hash.text(name);
        }
        self.left -= 1;
        self.next(seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for Elements<'_, '_> {
    type Error = Refused;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Refused> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.next(seed).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refused> {
        self.next(seed)
    }
}

impl<'w, 'h> Reader<'w, 'h> {
    fn elements(self, depth: u32, names: &'static [&'static str], left: usize) -> Elements<'w, 'h> {
        Elements { walk: self.walk, depth, names, left }
    }
}

/// Methods of a reader for values of a fixed kind.
macro_rules! scalars {
    ($($method:ident $visit:ident $value:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
            self.walk.value(stringify!($method))?;
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for Reader<'_, '_> {
    type Error = Refused;

    scalars! {
        deserialize_bool visit_bool true;
        deserialize_i8 visit_i8 1;
        deserialize_i16 visit_i16 1;
        deserialize_i32 visit_i32 1;
        deserialize_i64 visit_i64 1;
        deserialize_i128 visit_i128 1;
        deserialize_u8 visit_u8 1;
        deserialize_u16 visit_u16 1;
        deserialize_u32 visit_u32 1;
        deserialize_u64 visit_u64 1;
        deserialize_u128 visit_u128 1;
        deserialize_f32 visit_f32 1.0;
        deserialize_f64 visit_f64 1.0;
        deserialize_char visit_char '1';
        deserialize_str visit_str "1";
        deserialize_string visit_str "1";
        deserialize_bytes visit_bytes b"1";
        deserialize_byte_buf visit_bytes b"1";
        deserialize_identifier visit_u64 0;
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Refused> {
        self.walk.value("any")?;
        Err(Refused)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Refused> {
        self.walk.value("any")?;
        Err(Refused)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.walk.value("option")?;
        if self.depth >= MAX_DEPTH {
            return visitor.visit_none();
        }
        visitor.visit_some(Reader { walk: self.walk, depth: self.depth + 1 })
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.walk.value("unit")?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.walk.value("unit")?;
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.walk.value("seq")?;
        let (depth, count) = (self.depth + 1, usize::from(self.depth < MAX_DEPTH));
        visitor.visit_seq(self.elements(depth, &[], count))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.walk.value("map")?;
        let (depth, count) = (self.depth + 1, usize::from(self.depth < MAX_DEPTH));
        visitor.visit_map(self.elements(depth, &[], count))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.walk.value("tuple")?;
        self.walk.hash.text(&length.to_string());
        let depth = self.depth;
        visitor.visit_seq(self.elements(depth, &[], length))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.walk.value("struct")?;
        let depth = self.depth;
        visitor.visit_seq(self.elements(depth, fields, fields.len()))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.walk.value("enum")?;
        let explored = self.walk.enums.entry(name).or_insert(0);
        // All variants are explored: any of them ends a recursive type.
        let variant = if *explored < variants.len() { *explored } else { 0 };
        if *explored < variants.len() {
            *explored += 1;
            variants.iter().for_each(|name| self.walk.hash.text(name));
        } else if self.depth >= MAX_DEPTH {
            return Err(Refused);
        }
        visitor.visit_enum(Variant { walk: self.walk, depth: self.depth + 1, variant })
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Selects a variant of an enum.
struct Variant<'w, 'h> {
    walk: &'w mut Walk<'h>,
    depth: u32,
    variant: usize,
}

impl<'de> EnumAccess<'de> for Variant<'_, '_> {
    type Error = Refused;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Refused> {
        let number = serde::de::value::U32Deserializer::new(self.variant as u32);
        Ok((seed.deserialize(number)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, '_> {
    type Error = Refused;

    fn unit_variant(self) -> Result<(), Refused> {
        self.walk.value("unit")
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Refused> {
        seed.deserialize(Reader { walk: self.walk, depth: self.depth })
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        Reader { walk: self.walk, depth: self.depth }.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        Reader { walk: self.walk, depth: self.depth }.deserialize_struct("", fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn shape<T: for<'de> Deserialize<'de>>() -> u32 {
        let mut hash = Hash::new();
        hash_shape::<T>(&mut hash);
        hash.finish()
    }

    mod one {
        #[derive(serde::Deserialize)]
        pub(super) struct Point {
            _x: u32,
            _y: u32,
        }

        #[derive(serde::Deserialize)]
        pub(super) enum Event {
            _Start,
            _Stop { _at: u64 },
        }
    }

    mod other {
        #[derive(serde::Deserialize)]
        pub(super) struct Point {
            _y: u32,
            _x: u32,
        }

        #[derive(serde::Deserialize)]
        pub(super) enum Event {
            _Start,
            _Stop { _at: u32 },
        }
    }

    #[derive(Deserialize)]
    #[allow(dead_code, reason = "only its shape is read")]
    enum Tree {
        _Node(Box<Tree>, Box<Tree>),
        _Leaf(u8),
    }

    #[derive(Deserialize)]
    struct List {
        _children: Vec<List>,
        _next: Option<Box<List>>,
        _named: BTreeMap<String, List>,
    }

    #[test]
    fn equal_types_have_equal_shapes_and_different_types_do_not() {
        assert_eq!(shape::<(u8, String)>(), shape::<(u8, String)>());
        assert_eq!(shape::<Vec<one::Event>>(), shape::<Vec<one::Event>>());
        let shapes = [
            shape::<u8>(),
            shape::<u16>(),
            shape::<String>(),
            shape::<Option<u8>>(),
            shape::<Vec<u8>>(),
            shape::<Vec<u16>>(),
            shape::<(u8, u8)>(),
            shape::<[u8; 3]>(),
            shape::<BTreeMap<u8, u8>>(),
            shape::<()>(),
            shape::<one::Point>(),
            shape::<other::Point>(),
            shape::<one::Event>(),
            shape::<other::Event>(),
            shape::<Option<one::Event>>(),
            shape::<Option<other::Event>>(),
            shape::<std::net::SocketAddr>(),
            shape::<std::num::NonZeroU32>(),
        ];
        let different: std::collections::BTreeSet<_> = shapes.iter().collect();
        assert_eq!(different.len(), shapes.len(), "{shapes:?}");
    }

    #[test]
    fn recursive_types_end() {
        assert_ne!(shape::<Tree>(), shape::<List>());
    }
}
