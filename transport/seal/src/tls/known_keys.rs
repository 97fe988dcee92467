//! Known keys: a file of names and public keys, as in WireGuard's configuration.

use std::str::FromStr;

/// The name of a peer, and the SHA-256 of its raw public key (SubjectPublicKeyInfo in DER).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownKey {
    /// The name of the peer.
    pub name: String,
    /// SHA-256 of its public key.
    pub fingerprint: [u8; 32],
}

impl FromStr for KnownKey {
    type Err = &'static str;

    /// Parses a line such as `billing-1 6f2c…`: a name and 64 hexadecimal digits.
    fn from_str(line: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected a name and a SHA-256 of 64 hexadecimal digits";
        let (name, digits) = line.trim().split_once(char::is_whitespace).ok_or(EXPECTED)?;
        let fingerprint = from_hex(digits.trim()).ok_or(EXPECTED)?;
        Ok(Self { name: name.to_owned(), fingerprint })
    }
}

/// Parses a file of known keys, one per line. Empty lines and lines that start with `#` are
/// skipped.
///
/// # Errors
///
/// The number of the first malformed line, and the expected form.
pub(super) fn parse(text: &str) -> Result<Vec<KnownKey>, (usize, &'static str)> {
    let mut keys = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            keys.push(line.parse().map_err(|expected| (n + 1, expected))?);
        }
    }
    Ok(keys)
}

fn from_hex(digits: &str) -> Option<[u8; 32]> {
    let digits = digits.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_key_in_each_line() {
        let digits = "0f".repeat(32);
        let text = format!("# hosts\n\nbilling-1  {digits}\nshop {digits}\n");
        let keys = parse(&text).unwrap();
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[0], KnownKey { name: "billing-1".into(), fingerprint: [15; 32] });
        assert_eq!(parse("a\nb").unwrap_err().0, 1);
        assert!(parse(&format!("a {}g", "0".repeat(63))).is_err());
        assert!(parse(&format!("a é{}", "0".repeat(62))).is_err());
    }
}
