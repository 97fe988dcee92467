//! Parser for files with a distribution of message sizes.
//!
//! The format is described at [`crate::Workload`], where users look for it.

use crate::size_distribution::SizeDistribution;

/// Accepted deviation of the last cumulative share from 1, for files with rounded shares.
const ROUNDING: f64 = 1e-6;

/// Reason why a text is not a distribution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CdfError {
    /// The text contains no size.
    #[error("no line with a size: write lines like `100 0.5`, with 1 as the last share")]
    Empty,
    /// A line is not a pair of numbers.
    #[error("line {line}: `{text}` is not a size and a share: write a line like `100 0.5`")]
    NotAPair {
        /// Line number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A size is not an integer in the range of message sizes.
    #[error("line {line}: `{text}` is not a size from 0 to 4294967295 bytes")]
    Size {
        /// Line number, from 1.
        line: usize,
        /// Text in place of the size.
        text: String,
    },
    /// A share is not a number above 0 and up to 1.
    #[error("line {line}: `{text}` is not a share above 0 and up to 1")]
    Share {
        /// Line number, from 1.
        line: usize,
        /// Text in place of the share.
        text: String,
    },
    /// A size or a share is not greater than on the line before.
    #[error("line {line}: the {what} does not increase: {now} follows {before}")]
    NotIncreasing {
        /// Line number, from 1.
        line: usize,
        /// `size` or `share`.
        what: &'static str,
        /// Value on the line before.
        before: f64,
        /// Value on this line.
        now: f64,
    },
    /// The last share is not 1.
    #[error("line {line}: the last share is {share} and must be 1")]
    NotComplete {
        /// Line number, from 1.
        line: usize,
        /// The last share.
        share: f64,
    },
}

/// Parses a distribution.
pub(crate) fn parse(text: &str) -> Result<SizeDistribution, CdfError> {
    let mut shares = Vec::new();
    let mut last: Option<Row> = None;
    for (index, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let row = Row::parse(index + 1, content)?;
        if let Some(last) = &last {
            row.must_follow(last)?;
        }
        let before = last.as_ref().map_or(0.0, |last| last.cumulative);
        shares.push((row.size, row.cumulative - before));
        last = Some(row);
    }
    let last = last.ok_or(CdfError::Empty)?;
    if last.cumulative < 1.0 - ROUNDING {
        return Err(CdfError::NotComplete { line: last.line, share: last.cumulative });
    }
    Ok(SizeDistribution::from_shares(&shares))
}

/// One line of a file.
struct Row {
    /// Line number, from 1.
    line: usize,
    size: u32,
    cumulative: f64,
}

impl Row {
    fn parse(line: usize, content: &str) -> Result<Self, CdfError> {
        let mut fields = content.split_whitespace();
        let (Some(size), Some(share), None) = (fields.next(), fields.next(), fields.next()) else {
            return Err(CdfError::NotAPair { line, text: content.to_owned() });
        };
        let cumulative = share.parse().ok().filter(|&share| share > 0.0 && share <= 1.0);
        Ok(Self {
            line,
            size: parse_size(size).ok_or(CdfError::Size { line, text: size.to_owned() })?,
            cumulative: cumulative.ok_or(CdfError::Share { line, text: share.to_owned() })?,
        })
    }

    fn must_follow(&self, before: &Self) -> Result<(), CdfError> {
        let increases = |what, before, now| {
            if now > before {
                Ok(())
            } else {
                Err(CdfError::NotIncreasing { line: self.line, what, before, now })
            }
        };
        increases("size", f64::from(before.size), f64::from(self.size))?;
        increases("share", before.cumulative, self.cumulative)
    }
}

/// Parses a message size in bytes; `_` may group the digits.
pub(crate) fn parse_size(text: &str) -> Option<u32> {
    text.replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_empty_lines_are_ignored() {
        let sizes = parse("# sizes\n\n 64 0.5 # half\n1_500\t0.9\n\n1000000 1\n").unwrap();
        let steps: Vec<_> = sizes.iter().map(|(size, share)| (size, share as f32)).collect();
        assert_eq!(steps, [(64, 0.5), (1500, 0.4), (1_000_000, 0.1)]);
    }

    #[test]
    fn a_rounded_last_share_counts_as_one() {
        assert_eq!(parse("1 0.5\n2 0.9999999").unwrap().messages_up_to(2), 1.0);
    }

    #[test]
    fn the_first_size_may_be_0() {
        let sizes = parse("0 0.25\n100 1").unwrap();
        assert_eq!(sizes.iter().collect::<Vec<_>>(), [(0, 0.25), (100, 0.75)]);
    }

    #[test]
    fn each_mistake_names_its_line() {
        let wrong = |text: &str| parse(text).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                "# nothing",
                "100",
                "100 0.5 7",
                "a 1",
                "4294967296 1",
                "-1 1",
                "10 x",
                "10 0",
                "10 1.5",
                "10 NaN",
                "10 -1",
                "10 0.5\n10 1",
                "10 0.5\n\n5 1",
                "10 0.5\n20 0.5",
                "10 0.5\n20 0.4",
                "10 0.5\n20 0.9",
            ]
            .map(|text| format!("{text:?}\n    {}", wrong(text)))
            .join("\n")
        );
    }
}
