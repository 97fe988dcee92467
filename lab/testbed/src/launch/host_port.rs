//! Parser for `HOST[:PORT]`.

use std::net::Ipv6Addr;

/// Returns the parts of `HOST[:PORT]`, with an IPv6 address in brackets; `None` for other text.
pub(super) fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(text) => {
            let (host, rest) = text.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
            (host, port)
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => Some(port.parse().ok().filter(|port| *port > 0)?),
        None => None,
    };
    (!host.is_empty() && !host.contains(char::is_whitespace)).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_may_be_absent_and_brackets_hold_colons() {
        assert_eq!(host_and_port("h"), Some(("h", None)));
        assert_eq!(host_and_port("h.example:22"), Some(("h.example", Some(22))));
        assert_eq!(host_and_port("[::1]"), Some(("::1", None)));
        assert_eq!(host_and_port("[::1]:65535"), Some(("::1", Some(65_535))));
        for wrong in
            ["", ":1", "h:", "h:0", "h:65536", "h:x", "::1", "[::1", "[::1]2", "[h]:1", "a b"]
        {
            assert_eq!(host_and_port(wrong), None, "{wrong}");
        }
    }
}
