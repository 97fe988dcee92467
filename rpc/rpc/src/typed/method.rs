//! A method of a typed service: its name, and the signature that client and server must share.

use super::codec::{Codec, Message};
use super::shape::{Hash, hash_shape};
use crate::byte_str::ByteStr;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// A method; a static in generated code.
#[derive(Debug)]
pub struct Method {
    path: &'static str,
    idempotent: bool,
    shape: fn(&str) -> u32,
    signature: OnceLock<u32>,
}

/// The types of a method: arguments, parts of a streamed argument, result, error.
pub struct Shape<C, A, P, T, E>(PhantomData<C>, PhantomData<(A, P)>, PhantomData<(T, E)>);

impl<C: Codec, A: Message, P: Message, T: Message, E: Message> Shape<C, A, P, T, E> {
    /// Returns the signature of a method with these types: never 0.
    #[must_use]
    pub fn signature(path: &str) -> u32 {
        let mut hash = Hash::new();
        hash.text(path);
        hash.text(C::NAME);
        if !C::SELF_DESCRIBING {
            hash_shape::<A>(&mut hash);
            hash_shape::<P>(&mut hash);
            hash_shape::<T>(&mut hash);
            hash_shape::<E>(&mut hash);
        }
        hash.finish()
    }
}

impl Method {
    /// Creates a method whose signature `shape` computes once, from its path.
    #[must_use]
    pub const fn new(path: &'static str, idempotent: bool, shape: fn(&str) -> u32) -> Self {
        Self { path, idempotent, shape, signature: OnceLock::new() }
    }

    /// Returns service and method.
    #[must_use]
    pub const fn path(&self) -> ByteStr {
        ByteStr::from_static(self.path)
    }

    /// Returns whether executing a request twice is harmless.
    #[must_use]
    pub const fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    /// Returns the signature.
    pub fn signature(&self) -> u32 {
        *self.signature.get_or_init(|| (self.shape)(self.path))
    }
}
