//! Random packet loss in the switch.
//!
//! A firewall rule drops packets on their way from port to port, before the queue of the outgoing
//! port.

use serde_json::Value;

use super::error::FabricError;
use super::layout::Layout;
use super::tool::Tool;
use apus_measure::error::Error;

/// Upper end of the range of the random numbers.
const NUMBERS: u32 = 1_000_000_000;

/// Installs the rule if the settings specify loss.
pub(super) fn begin(layout: &Layout) -> Result<(), Error> {
    if layout.spec.loss == 0.0 {
        return Ok(());
    }
    layout.in_switch(Tool::Nft, &["-f", "-"], &rules(layout.spec.loss)).map(drop)
}

/// Returns the rules for `nft`.
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
    /// Returns the number of packets dropped because of [`super::Spec::loss`].
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
            Error::from(FabricError::Strange { place: "switch".to_owned(), command, problem })
        })
    }
}

/// Extracts the counter from the output of `nft`.
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
    fn a_share_becomes_a_range_of_numbers() {
        assert!(rules(0.001).contains("numgen random mod 1000000000 < 1000000 "));
    }

    #[test]
    fn the_counter_is_found_in_the_output() {
        let text = r#"{"nftables": [{"metainfo": {"version": "1.0.6"}},
            {"counter": {"family": "bridge", "name": "lost", "table": "apus", "packets": 17}}]}"#;
        assert_eq!(lost(text), Some(17));
        assert_eq!(lost(r#"{"nftables": []}"#), None);
        assert_eq!(lost("nothing"), None);
    }
}
