//! Admission by class as exact mathematics: the loss system of Simon et al.,
//! section 3, and what follows from it.
//!
//! C virtual servers (slots) serve Poisson arrivals of K classes; a request that
//! is blocked is lost. `rho_k` is the offered load of class k in erlangs: its
//! arrivals times the mean of its holding time, whose law does not matter beyond
//! that. A viewing of class k takes `b_k` servers; of class k no more than `T_k`
//! are served at once. States are lawful if `sum b_k n_k <= C` and `n_k <= T_k`,
//! and have the weight `prod rho_k^n_k / n_k!` (product form, Kaufman).
//!
//! [`System::blocking`] is the one to use. The [`recursion`] and the
//! [`enumeration`] check it, [`limits`] are the classical formulas that it
//! becomes without thresholds, [`misses`] adds the link to the origin, and
//! [`sizing`] looks for thresholds with which targets are met.

mod apart;
mod convolution;
pub mod enumeration;
pub mod limits;
pub mod misses;
pub mod recursion;
pub mod sizing;
mod terms;
mod wide;

use std::fmt;

/// The most servers that are calculated with: the work grows with their square.
pub const MAX_SERVERS: u32 = 50_000;
/// The most classes.
pub const MAX_CLASSES: usize = 64;
/// The largest load of a class, in erlangs.
pub const MAX_ERLANGS: f64 = 1e12;

/// One class of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// `rho_k`, in erlangs. 0 to [`MAX_ERLANGS`].
    pub erlangs: f64,
    /// `b_k`: the servers that one request takes. 1 or more.
    pub servers: u32,
    /// `T_k`, in viewings; none: no threshold.
    pub threshold: Option<u32>,
}

impl Load {
    /// A class whose requests take one server each, without a threshold.
    pub const fn of(erlangs: f64) -> Self {
        Self { erlangs, servers: 1, threshold: None }
    }

    /// The same with a threshold.
    #[must_use]
    pub const fn up_to(self, threshold: u32) -> Self {
        Self { threshold: Some(threshold), ..self }
    }

    /// The same with so many servers for each request.
    #[must_use]
    pub const fn taking(self, servers: u32) -> Self {
        Self { servers, ..self }
    }

    /// The most viewings there can be on `servers` servers: `min(T_k, C / b_k)`.
    fn most(&self, servers: u32) -> u32 {
        let room = servers.checked_div(self.servers).unwrap_or(0);
        self.threshold.map_or(room, |threshold| threshold.min(room))
    }
}

/// Servers and the classes that ask for them, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    servers: u32,
    classes: Vec<Load>,
}

/// What cannot be calculated.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TheoryError {
    /// There is no class.
    #[error("there is no class of requests")]
    Empty,
    /// There are more than [`MAX_CLASSES`].
    #[error("{0} classes are more than {MAX_CLASSES}")]
    Classes(usize),
    /// The load of a class is negative, too large or not a number.
    #[error("class {class}: a load of {erlangs} erlangs is not between 0 and {MAX_ERLANGS}")]
    Erlangs {
        /// Which class, from 1.
        class: usize,
        /// Its load.
        erlangs: f64,
    },
    /// A request of this class takes no server.
    #[error("class {0}: each request takes one server or more")]
    NoServers(usize),
    /// More servers than [`MAX_SERVERS`].
    #[error("{0} servers are more than {MAX_SERVERS}")]
    Servers(u32),
    /// A share is not between 0 and 1.
    #[error("class {class}: a share of {share} is not between 0 and 1")]
    Share {
        /// Which class, from 1.
        class: usize,
        /// The share.
        share: f64,
    },
    /// There are too many states for this method.
    #[error("there are more states than this method can go through")]
    States,
    /// All digits were lost, or the range of numbers was left.
    #[error("all digits are lost with these loads and thresholds")]
    Unstable,
    /// This method knows requests of one server only.
    #[error("this method knows requests of one server only")]
    Multirate,
}

impl System {
    /// A system, if it can be calculated.
    pub fn new(servers: u32, classes: Vec<Load>) -> Result<Self, TheoryError> {
        if classes.is_empty() {
            return Err(TheoryError::Empty);
        }
        if classes.len() > MAX_CLASSES {
            return Err(TheoryError::Classes(classes.len()));
        }
        if servers > MAX_SERVERS {
            return Err(TheoryError::Servers(servers));
        }
        for (class, load) in (1..).zip(&classes) {
            check_erlangs(class, load.erlangs)?;
            if load.servers == 0 {
                return Err(TheoryError::NoServers(class));
            }
        }
        Ok(Self { servers, classes })
    }

    /// C.
    pub const fn servers(&self) -> u32 {
        self.servers
    }

    /// The classes.
    pub fn classes(&self) -> &[Load] {
        &self.classes
    }

    /// `B_k`: the probability that a request of class k is refused, for each
    /// class, by convolution of truncated Poisson terms. O(K C^2) time; the
    /// relative error is below 1e-12 for C up to 1000.
    pub fn blocking(&self) -> Vec<f64> {
        convolution::blocking(self)
    }

    /// The erlangs that each class has carried: `rho_k (1 - B_k)`.
    pub fn carried(&self, blocking: &[f64]) -> Vec<f64> {
        self.classes.iter().zip(blocking).map(|(load, blocked)| load.erlangs * (1.0 - blocked)).collect()
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} servers", self.servers)?;
        for Load { erlangs, servers, threshold } in &self.classes {
            write!(f, ", {erlangs} erlangs x {servers}")?;
            if let Some(threshold) = threshold {
                write!(f, " up to {threshold}")?;
            }
        }
        Ok(())
    }
}

fn check_erlangs(class: usize, erlangs: f64) -> Result<(), TheoryError> {
    let lawful = (0.0..=MAX_ERLANGS).contains(&erlangs);
    if lawful { Ok(()) } else { Err(TheoryError::Erlangs { class, erlangs }) }
}

/// A share between 0 and 1.
fn check_share(class: usize, share: f64) -> Result<(), TheoryError> {
    let lawful = (0.0..=1.0).contains(&share);
    if lawful { Ok(()) } else { Err(TheoryError::Share { class, share }) }
}

/// A count as a position in a list.
fn at(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
