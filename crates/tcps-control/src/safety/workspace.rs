//! Where values may be: commands outside are refused, and nothing that the follower does leads farther out.

use tcps_core::param::Fault;

/// Bound of a value whose workspace is not said.
pub const MOST: f64 = 1e6;

/// The least and the most of each value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Workspace {
    /// None: any value up to `MOST`; one: of every value; else one for each.
    bounds: Vec<[f64; 2]>,
}

impl Workspace {
    /// Refuses bounds that leave no room.
    pub fn new(bounds: Vec<[f64; 2]>) -> Result<Self, Fault> {
        let sound = |b: &&[f64; 2]| b[0] < b[1] && b[0] >= -MOST && b[1] <= MOST;
        match bounds.iter().find(|b| !sound(b)) {
            Some(pair) => {
                let allowed = format!("[least, most] of a value, within {MOST:e}, such as [[-1, 1]]");
                Err(Fault::new("workspace", format!("{pair:?}"), allowed))
            }
            None => Ok(Self { bounds }),
        }
    }

    /// The bounds of value `i`; none where there is no such value.
    fn of(&self, i: usize) -> Option<[f64; 2]> {
        match self.bounds.len() {
            0 => Some([-MOST, MOST]),
            1 => Some(self.bounds[0]),
            _ => self.bounds.get(i).copied(),
        }
    }

    /// What is wrong with values, if anything is.
    pub fn refuses(&self, values: &[f64]) -> Option<String> {
        if self.bounds.len() > 1 && self.bounds.len() != values.len() {
            return Some(format!("{} values, and the workspace has {}", values.len(), self.bounds.len()));
        }
        values.iter().enumerate().find_map(|(i, v)| {
            let [low, high] = self.of(i)?;
            let inside = *v >= low && *v <= high;
            (!inside).then(|| format!("value {i} is {v:e}, outside the workspace {low:e} to {high:e}"))
        })
    }

    /// A step of value `i`, without its part that leads farther out.
    pub fn held(&self, i: usize, from: f64, to: f64) -> f64 {
        self.of(i).map_or(from, |[low, high]| to.clamp(low.min(from), high.max(from)))
    }
}
