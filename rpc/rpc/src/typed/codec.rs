//! How arguments and results become bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes for which the memory of a message has room at first, so that most need no more.
pub(super) const ROOM: usize = 256;

/// What a method takes and returns: a type that serde can write and read.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument or a result of a service",
    label = "it is sent to another process",
    note = "derive `serde::Serialize` and `serde::Deserialize` for it; it must own what it has, and be `Send`"
)]
pub trait Message: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Message for T {}

/// Why bytes are no value of a type, or a value cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CodecError(String);

/// A format of arguments and results.
pub trait Codec: Send + Sync + 'static {
    /// Name of the format; part of the signature of methods.
    const NAME: &'static str;

    /// Whether the format names its fields, so that types may gain fields without a new method. Otherwise client and server
    /// must mean exactly the same types, which the signature of a method checks.
    const SELF_DESCRIBING: bool;

    /// Appends a value to `bytes`.
    ///
    /// # Errors
    ///
    /// [`CodecError`]: the format has no place for the value.
    fn encode<T: Serialize>(value: &T, bytes: Vec<u8>) -> Result<Vec<u8>, CodecError>;

    /// Reads a value, which must be all of `bytes`.
    ///
    /// # Errors
    ///
    /// [`CodecError`]: the bytes are no value of the type.
    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError>;
}

/// The default format: [postcard](https://postcard.jamesmunns.com/wire-format). Compact, fast, and not self-describing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Postcard;

impl Codec for Postcard {
    const NAME: &'static str = "postcard";
    const SELF_DESCRIBING: bool = false;

    fn encode<T: Serialize>(value: &T, bytes: Vec<u8>) -> Result<Vec<u8>, CodecError> {
        postcard::to_extend(value, bytes).map_err(|error| CodecError(error.to_string()))
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        match postcard::take_from_bytes(bytes) {
            Ok((value, [])) => Ok(value),
            Ok((_, left)) => Err(CodecError(format!("{} bytes follow the value", left.len()))),
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
