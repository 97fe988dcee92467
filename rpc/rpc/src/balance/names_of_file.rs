//! Addresses of servers from a file.

use super::servers::{Servers, Watching};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;

/// Returns servers whose addresses are in a file, one `address:port` per line; `#` starts a
/// comment. The file is reread every `interval`. While it is missing or malformed, the last
/// addresses stay, so a half-written file removes no server.
///
/// # Errors
///
/// The file cannot be read, or a line is malformed; the message contains its number.
///
/// # Panics
///
/// Outside of a tokio runtime with time enabled.
pub fn file(path: impl Into<PathBuf>, interval: Duration) -> io::Result<Servers> {
    let path = path.into();
    let (sender, addresses) = watch::channel(parse(&std::fs::read_to_string(&path)?)?);
    let task = tokio::spawn(async move {
        loop {
            tokio::time::sleep(interval).await;
            // Reading a few lines of a local file takes less time than passing the task to another
            // thread.
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let Ok(found) = parse(&text) else { continue };
            sender.send_if_modified(|known| {
                let changed = *known != found;
                *known = found;
                changed
            });
        }
    });
    Ok(Servers { addresses, _task: Some(Watching(task)) })
}

/// Returns the addresses in the text of such a file, without duplicates.
///
/// # Errors
///
/// A line is malformed; the message contains its number.
pub fn parse(text: &str) -> io::Result<Vec<SocketAddr>> {
    let mut addresses = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let address = apus::address::parse(line).map_err(|error| {
            let message = format!("line {}: {error}", number + 1);
            io::Error::new(io::ErrorKind::InvalidData, message)
        })?;
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn addresses_are_read_and_malformed_lines_are_named() {
        let text = "# servers\n10.0.0.7:4000\n\n[::1]:1 # local\n10.0.0.7:4000\n";
        let addresses = parse(text).unwrap();
        assert_eq!(addresses, ["10.0.0.7:4000".parse().unwrap(), "[::1]:1".parse().unwrap()]);
        let error = parse("10.0.0.7:4000\n10.0.0.8\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("10.0.0.8"), "{error}");
        assert!(parse("").unwrap().is_empty());
    }
}
