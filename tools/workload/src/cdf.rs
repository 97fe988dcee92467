//! How does a distribution of message sizes look in a file?
//!
//! The format is described at [`crate::Workload`], where users look for it.

use crate::Sizes;

/// How far the last cumulative share may be from 1, for files whose author rounded.
const ROUNDING: f64 = 1e-6;

/// What is wrong with the text of a distribution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CdfError {
    /// There is no size in it.
    #[error("no line with a size: write lines like `100 0.5`, the last share being 1")]
    Empty,
    /// A line is not a pair of numbers.
    #[error("line {line}: `{text}` is not a size and a share: write a line like `100 0.5`")]
    NotAPair {
        /// Number of the line, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A size is not a whole number that a message can have.
    #[error("line {line}: `{text}` is not a size from 1 to 4294967295 bytes")]
    Size {
        /// Number of the line, from 1.
        line: usize,
        /// What stands for the size.
        text: String,
    },
    /// A share is not a number above 0 and not above 1.
    #[error("line {line}: `{text}` is not a share above 0 and up to 1")]
    Share {
        /// Number of the line, from 1.
        line: usize,
        /// What stands for the share.
        text: String,
    },
    /// A size or a share is not larger than that of the line before.
    #[error("line {line}: the {what} does not increase: {now} follows {before}")]
    NotIncreasing {
        /// Number of the line, from 1.
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
        /// Number of the line, from 1.
        line: usize,
        /// The last share.
        share: f64,
    },
}

/// Reads a distribution.
pub(crate) fn parse(text: &str) -> Result<Sizes, CdfError> {
    let mut shares = Vec::new();
    let mut last = Point { line: 0, size: 0, cumulative: 0.0 };
    for (index, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let point = Point::parse(index + 1, content)?;
        point.must_follow(&last)?;
        shares.push((point.size, point.cumulative - last.cumulative));
        last = point;
    }
    if shares.is_empty() {
        return Err(CdfError::Empty);
    }
    if last.cumulative < 1.0 - ROUNDING {
        return Err(CdfError::NotComplete { line: last.line, share: last.cumulative });
    }
    Ok(Sizes::from_shares(&shares))
}

/// One line of a file.
struct Point {
    /// Number of the line, from 1; 0 stands for "before the first line".
    line: usize,
    size: u32,
    cumulative: f64,
}

impl Point {
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

/// A size in bytes that a message can have; `_` may group the digits.
pub(crate) fn parse_size(text: &str) -> Option<u32> {
    text.replace('_', "").parse().ok().filter(|&size| size >= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_empty_lines_do_not_count() {
        let sizes = parse("# sizes\n\n 64 0.5 # half\n1_500\t0.9\n\n1000000 1\n").unwrap();
        let steps: Vec<_> = sizes.iter().map(|(size, share)| (size, share as f32)).collect();
        assert_eq!(steps, [(64, 0.5), (1500, 0.4), (1_000_000, 0.1)]);
    }

    #[test]
    fn a_last_share_that_was_rounded_counts_as_one() {
        assert_eq!(parse("1 0.5\n2 0.9999999").unwrap().messages_up_to(2), 1.0);
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
                "0 1",
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
