//! Codecs: encode arguments and results as bytes.

use super::bounded::{Bounded, Limits};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Initial capacity of a message, enough for most.
pub(super) const ROOM: usize = 256;

/// An argument or result: a type that serde can write and read.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument or a result of a service",
    label = "it is sent to another process",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it; it must own what it has, and be `Send`"
)]
pub trait Message: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Message for T {}

/// Reason why bytes could not be decoded, or a value could not be encoded.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CodecError(String);

/// A format of arguments and results.
pub trait Codec: Send + Sync + 'static {
    /// Name of the format; part of the signature of methods.
    const NAME: &'static str;

    /// Whether the format contains field names, so that types may gain fields without a new method.
    /// Otherwise client and server must use exactly the same types, and the signature of a method
    /// checks that.
    const SELF_DESCRIBING: bool;

    /// Appends a value to `bytes`.
    ///
    /// # Errors
    ///
    /// [`CodecError`]: the format cannot represent the value.
    fn encode<T: Serialize>(value: &T, bytes: Vec<u8>) -> Result<Vec<u8>, CodecError>;

    /// Decodes a value, which must take up all of `bytes`. They are a peer's: the implementation
    /// bounds the depth of the value and its own work.
    ///
    /// # Errors
    ///
    /// [`CodecError`]: the bytes are not a value of the type.
    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError>;
}

/// The default format: [postcard](https://postcard.jamesmunns.com/wire-format). Compact, fast, and
/// not self-describing.
///
/// Values that nest deeper than 128, and lists with more elements than the message has bytes, plus
/// 4,096, are malformed: a peer can make a recursive type neither overflow the stack nor loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Postcard;

impl Codec for Postcard {
    const NAME: &'static str = "postcard";
    const SELF_DESCRIBING: bool = false;

    fn encode<T: Serialize>(value: &T, bytes: Vec<u8>) -> Result<Vec<u8>, CodecError> {
        postcard::to_extend(value, bytes).map_err(|error| CodecError(error.to_string()))
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        let limits = Limits::new(bytes.len());
        let mut reader = postcard::Deserializer::from_bytes(bytes);
        let value = T::deserialize(Bounded::new(&mut reader, &limits));
        if let Some(exceeded) = limits.exceeded() {
            return Err(CodecError(exceeded.to_string()));
        }
        let value = value.map_err(|error| CodecError(error.to_string()))?;
        match reader.finalize() {
            Ok([]) => Ok(value),
            Ok(left) => Err(CodecError(format!("{} bytes follow the value", left.len()))),
            Err(error) => Err(CodecError(error.to_string())),
        }
    }
}

/// JSON: fields have names, so that types may gain optional fields.
#[cfg(feature = "json")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

#[cfg(feature = "json")]
impl Codec for Json {
    const NAME: &'static str = "json";
    const SELF_DESCRIBING: bool = true;

    fn encode<T: Serialize>(value: &T, mut bytes: Vec<u8>) -> Result<Vec<u8>, CodecError> {
        serde_json::to_writer(&mut bytes, value).map_err(|error| CodecError(error.to_string()))?;
        Ok(bytes)
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        serde_json::from_slice(bytes).map_err(|error| CodecError(error.to_string()))
    }
}
