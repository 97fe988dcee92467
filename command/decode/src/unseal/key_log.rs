//! Key log files: handshake secrets in the format that TLS libraries write to the file named by
//! `SSLKEYLOGFILE`.
//!
//! Source: <https://datatracker.ietf.org/doc/draft-ietf-tls-keylogfile>. A line has a label, the
//! random number of the ClientHello, and a secret, both in hexadecimal digits. Comments and lines
//! with other labels are skipped.

use std::collections::HashMap;

use thiserror::Error;

/// Bytes of the random number of a ClientHello. Source: RFC 8446 section 4.1.2.
pub(super) const RANDOM_LEN: usize = 32;

/// The random number of a ClientHello, which identifies a handshake.
pub(super) type ClientRandom = [u8; RANDOM_LEN];

/// The secrets of handshakes.
#[derive(Clone, Default)]
pub struct KeyLog {
    handshakes: HashMap<ClientRandom, Secrets>,
}

/// The secrets of a handshake, as far as the file contains them.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    pub(super) client: Option<Vec<u8>>,
    pub(super) server: Option<Vec<u8>>,
    pub(super) exporter: Option<Vec<u8>>,
}

/// A malformed line of a key log.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line} is not `LABEL RANDOM SECRET` with hexadecimal digits")]
pub struct KeyLogError {
    /// Number of the line, starting at 1.
    pub line: usize,
}

/// Shows no secret.
impl std::fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyLog").field("handshakes", &self.handshakes.len()).finish()
    }
}

impl KeyLog {
    /// Reads the text of a key log.
    ///
    /// # Errors
    ///
    /// A line is malformed. A last line without its end is skipped: a program may still be writing
    /// it.
    pub fn parse(text: &str) -> Result<Self, KeyLogError> {
        let mut log = Self::default();
        for (number, whole) in text.split_inclusive('\n').enumerate() {
            let line = whole.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match parse_line(line) {
                Some((label, random, secret)) => log.add(label, random, secret),
                None if !whole.ends_with('\n') => {}
                None => return Err(KeyLogError { line: number + 1 }),
            }
        }
        Ok(log)
    }

    fn add(&mut self, label: &str, random: ClientRandom, secret: Vec<u8>) {
        let secrets = self.handshakes.entry(random).or_default();
        match label {
            "CLIENT_TRAFFIC_SECRET_0" => secrets.client = Some(secret),
            "SERVER_TRAFFIC_SECRET_0" => secrets.server = Some(secret),
            "EXPORTER_SECRET" => secrets.exporter = Some(secret),
            _ => {}
        }
    }

    /// Returns the number of handshakes with a secret in the log.
    #[must_use]
    pub fn handshakes(&self) -> usize {
        self.handshakes.len()
    }

    pub(super) fn secrets(&self, random: &ClientRandom) -> Option<&Secrets> {
        self.handshakes.get(random)
    }
}

fn parse_line(line: &str) -> Option<(&str, ClientRandom, Vec<u8>)> {
    let mut words = line.split_ascii_whitespace();
    let (label, random, secret) = (words.next()?, words.next()?, words.next()?);
    let secret = bytes(secret).filter(|secret| !secret.is_empty())?;
    let random = bytes(random)?.try_into().ok()?;
    words.next().is_none().then_some((label, random, secret))
}

/// Parses hexadecimal digits into bytes.
pub(super) fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        digits.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secrets_of_a_handshake_are_found_by_its_random_number() {
        let random = "ab".repeat(RANDOM_LEN);
        let text = format!(
            "# a comment\n\nCLIENT_TRAFFIC_SECRET_0 {random} 0102\nSERVER_TRAFFIC_SECRET_0 {random} 03\n\
             CLIENT_HANDSHAKE_TRAFFIC_SECRET {random} 04\nEXPORTER_SECRET {random} 05\r\nCLIENT_TRAFFIC"
        );
        let log = KeyLog::parse(&text).unwrap();
        let secrets = log.secrets(&[0xab; RANDOM_LEN]).unwrap();
        assert_eq!(secrets.client.as_deref(), Some(&[1, 2][..]));
        assert_eq!(secrets.server.as_deref(), Some(&[3][..]));
        assert_eq!(secrets.exporter.as_deref(), Some(&[5][..]));
        assert_eq!(log.handshakes(), 1);
        assert_eq!(format!("{log:?}"), "KeyLog { handshakes: 1 }");
    }

    #[test]
    fn a_line_of_another_form_is_an_error() {
        let random = "ab".repeat(RANDOM_LEN);
        for line in ["hello", &format!("L {random}"), &format!("L {random} 0"), "L ab 01", "L é 01"]
        {
            let text = format!("# first\n{line}\n");
            assert_eq!(KeyLog::parse(&text).unwrap_err(), KeyLogError { line: 2 }, "{line}");
        }
    }
}
