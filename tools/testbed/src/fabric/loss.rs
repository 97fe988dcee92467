//! How does the switch lose packets at random?
//!
//! A rule in the chain that every packet passes on its way from port to port, before the queue of the
//! port that it leaves through.

use serde_json::Value;

use super::layout::Layout;
use super::refusal::Refusal;
use super::tool::Tool;
use crate::error::Error;

/// Chance is drawn from so many numbers.
const NUMBERS: u32 = 1_000_000_000;

/// Begins to lose packets, if that is asked for.
pub(super) fn begin(layout: &Layout) -> Result<(), Error> {
    if layout.spec.loss == 0.0 {
        return Ok(());
    }
    layout.in_switch(Tool::Nft, &["-f", "-"], &rules(layout.spec.loss)).map(drop)
}

/// For `nft`.
fn rules(loss: f64) -> String {
    let below = (loss * f64::from(NUMBERS)).round();
    format!(
        "table bridge apus {{
  counter lost {{
  }}
  chain forward {{
    type filter hook forward priority 0
    numgen random mod {NUMBERS} < {below} counter name lost drop
  }}
}}
"
    )
}

impl Layout {
    /// Packets that were lost because [`super::Spec::loss`] asked for it.
    ///
    /// # Errors
    ///
    /// `nft` fails.
    pub fn lost(&self) -> Result<u64, Error> {
        if self.spec.loss == 0.0 {
            return Ok(0);
        }
        let arguments = ["-j", "list", "counters"];
        let text = self.in_switch(Tool::Nft, &arguments, "")?;
        lost(&text).ok_or_else(|| {
            let command = format!("nft {}", arguments.join(" "));
            let problem = "no counter `lost`".to_owned();
            Error::Fabric(Refusal::Strange { place: "switch".to_owned(), command, problem })
        })
    }
}

/// The counter in what `nft` prints.
fn lost(text: &str) -> Option<u64> {
    let all: Value = serde_json::from_str(text).ok()?;
    let counters = all["nftables"].as_array()?.iter().map(|each| &each["counter"]);
    let mut lost = counters.filter(|counter| counter["name"] == "lost");
    lost.next()?["packets"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_becomes_so_many_numbers() {
        assert!(rules(0.001).contains("numgen random mod 1000000000 < 1000000 "));
    }

    #[test]
    fn the_counter_is_found_among_the_rest() {
        let text = r#"{"nftables": [{"metainfo": {"version": "1.0.6"}},
            {"counter": {"family": "bridge", "name": "lost", "table": "apus", "packets": 17}}]}"#;
        assert_eq!(lost(text), Some(17));
        assert_eq!(lost(r#"{"nftables": []}"#), None);
        assert_eq!(lost("nothing"), None);
    }
}
