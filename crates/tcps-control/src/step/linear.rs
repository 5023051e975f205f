//! A linear system with one input u and one output y: a plant, or a controller.
//!
//! ```text
//! in s        x' = A x + B u,  y = C x + D u                                       times in s
//! in z        x <- A x + B u   once in each of its steps
//!
//! held        [Ad Bd; 0 1] = exp([A B; 0 0] dt), in z [A B; 0 1]^n                  exact while u holds
//! bilinear    M = (I - A dt/2)^-1:  Ad = M (I + A dt/2),  Bd = M B dt,  Cd = C M,  Dd = D + C M B dt/2   (Tustin)
//! ```

use serde::Serialize;
use tcps_core::{param::Fault, time::Time};

/// Terms of the exponential: what is left of it at a norm of 1/2 is below the last bit.
const TERMS: u32 = 16;

type Matrix = Vec<Vec<f64>>;

/// A linear system.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Linear {
    /// What the state makes of itself.
    pub a: Matrix,
    /// What the input makes of it.
    pub b: Vec<f64>,
    /// What is seen of it.
    pub c: Vec<f64>,
    /// What is seen of the input at once.
    pub d: f64,
    /// Time between two of its steps; 0 where it moves all the time.
    pub step_ns: Time,
}

/// How a system in s goes from tick to tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Its input holds in between: a plant.
    Held,
    /// By the trapezoidal rule: a controller.
    Bilinear,
}

impl Linear {
    /// That of a transfer function, with coefficients from the highest power on.
    ///
    /// Controllable canonical form in s/w, where w, from the coefficients, is about as large as the largest pole: the
    /// numbers of the matrices are then of one size.
    pub fn of_polynomials(num: &[f64], den: &[f64], step_ns: Time) -> Result<Self, Fault> {
        let (num, den) = (stripped(num), stripped(den));
        let Some((&lead, rest)) = den.split_first() else {
            let allowed = "coefficients from the highest power on, one of them not 0, such as [0.05, 1.0]";
            return Err(Fault::new("den", "no coefficient but 0", allowed));
        };
        let n = rest.len();
        if num.len() > den.len() {
            let found = format!("degree {} over degree {n}, which is improper", num.len() - 1);
            return Err(Fault::new(
                "num",
                found,
                format!("at most as many coefficients as den has, here {}", n + 1),
            ));
        }
        let above: Vec<f64> = (0..=n)
            .map(|i| (i + num.len()).checked_sub(den.len()).map_or(0.0, |place| num[place] / lead))
            .collect();
        let below: Vec<f64> = rest.iter().map(|x| x / lead).collect();
        let root = |(i, x): (usize, &f64)| libm::pow(x.abs(), 1.0 / (i + 1) as f64);
        let largest = below.iter().enumerate().map(root).fold(0.0, f64::max);
        let w = if step_ns > 0 || largest == 0.0 { 1.0 } else { largest };
        let scaled = |i: usize, x: f64| (0..=i).fold(x, |x, _| x / w);
        let mut a = vec![vec![0.0; n]; n];
        for i in 1..n {
            a[i][i - 1] = w;
        }
        if let Some(first) = a.first_mut() {
            *first = below.iter().enumerate().map(|(i, x)| -w * scaled(i, *x)).collect();
        }
        let mut b = vec![0.0; n];
        if let Some(first) = b.first_mut() {
            *first = w;
        }
        let d = above[0];
        if !above.iter().chain(&below).all(|x| x.is_finite()) {
            let allowed = "coefficients whose ratios are numbers, such as [0.05, 1.0]";
            return Err(Fault::new("den", "coefficients too far apart", allowed));
        }
        let c = (0..n).map(|i| scaled(i, above[i + 1] - d * below[i])).collect();
        Ok(Self { a, b, c, d, step_ns })
    }

    /// Whether its answer is its input, at once.
    pub fn is_static(&self) -> bool {
        self.a.is_empty() && self.d == 1.0
    }

    /// The same from tick to tick, if it can be.
    pub fn sampled(&self, tick_ns: Time, rule: Rule) -> Result<Self, Fault> {
        if self.step_ns > 0 && tick_ns % self.step_ns != 0 {
            let found = format!("{} ms", self.step_ns as f64 * 1e-6);
            let allowed = format!("a part of the period at which it is used, {} ms", tick_ns as f64 * 1e-6);
            return Err(Fault::new("sample_time_ns", found, allowed));
        }
        let found = self.ticked(tick_ns, rule);
        let finite = [&found.b, &found.c].into_iter().chain(&found.a).flatten().all(|x| x.is_finite());
        if !finite || !found.d.is_finite() {
            let found =
                format!("a system without finite matrices from tick to tick ({} ms)", tick_ns as f64 * 1e-6);
            return Err(Fault::new("", found, "poles that grow less in a period, or a shorter period"));
        }
        Ok(found)
    }

    /// The same from tick to tick.
    #[must_use]
    pub fn ticked(&self, tick_ns: Time, rule: Rule) -> Self {
        match rule {
            _ if self.step_ns > 0 => self.stepped(tick_ns),
            Rule::Held => self.held(tick_ns),
            Rule::Bilinear => self.bilinear(tick_ns),
        }
    }

    /// With the input held between.
    fn held(&self, tick_ns: Time) -> Self {
        let dt = tick_ns as f64 * 1e-9;
        let mut m = self.with_input(0.0);
        m.iter_mut().flatten().for_each(|x| *x *= dt);
        let norm = |m: &Matrix| m.iter().map(|row| row.iter().map(|x| x.abs()).sum()).fold(0.0, f64::max);
        let mut squarings = 0;
        // Entries that are no finite numbers stay so, and the caller refuses them.
        while norm(&m) > 0.5 && squarings < 2_048 {
            m.iter_mut().flatten().for_each(|x| *x *= 0.5);
            squarings += 1;
        }
        let mut sum = identity(m.len());
        let mut term = sum.clone();
        for i in 1..=TERMS {
            term = product(&term, &m);
            term.iter_mut().flatten().for_each(|x| *x /= f64::from(i));
            sum.iter_mut().flatten().zip(term.iter().flatten()).for_each(|(s, t)| *s += t);
        }
        for _ in 0..squarings {
            sum = product(&sum, &sum);
        }
        self.without_input(sum)
    }

    /// As many of its own steps as are in a tick, with the input held.
    fn stepped(&self, tick_ns: Time) -> Self {
        let mut left = (tick_ns.max(0) + self.step_ns / 2) / self.step_ns;
        let mut power = self.with_input(1.0);
        let mut found = identity(power.len());
        while left > 0 {
            if left & 1 == 1 {
                found = product(&found, &power);
            }
            power = product(&power, &power);
            left >>= 1;
        }
        self.without_input(found)
    }

    fn bilinear(&self, tick_ns: Time) -> Self {
        let (n, dt) = (self.a.len(), tick_ns as f64 * 1e-9);
        let near = |sign: f64| -> Matrix {
            let entry = |i: usize, j: usize| f64::from(u8::from(i == j)) + sign * self.a[i][j] * dt * 0.5;
            (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect()
        };
        let m = inverse(near(-1.0));
        let mb: Vec<f64> = m.iter().map(|row| dot(row, &self.b) * dt).collect();
        let c = (0..n).map(|j| self.c.iter().zip(&m).map(|(c, row)| c * row[j]).sum()).collect();
        let d = self.d + 0.5 * dot(&self.c, &mb);
        Self { a: product(&m, &near(1.0)), b: mb, c, d, step_ns: 0 }
    }

    /// [A B; 0 corner].
    fn with_input(&self, corner: f64) -> Matrix {
        let n = self.a.len();
        let mut m: Matrix = self.a.iter().zip(&self.b).map(|(row, b)| [row, &[*b][..]].concat()).collect();
        m.push(vec![0.0; n + 1]);
        m[n][n] = corner;
        m
    }

    fn without_input(&self, m: Matrix) -> Self {
        let n = self.a.len();
        let b = m.iter().take(n).map(|row| row[n]).collect();
        let a = m.into_iter().take(n).map(|row| row[..n].to_vec()).collect();
        Self { a, b, c: self.c.clone(), d: self.d, step_ns: 0 }
    }
}

/// Coefficients without zeros in front.
fn stripped(all: &[f64]) -> &[f64] {
    &all[all.iter().position(|x| *x != 0.0).unwrap_or(all.len())..]
}

fn identity(n: usize) -> Matrix {
    (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect()
}

fn product(p: &[Vec<f64>], q: &[Vec<f64>]) -> Matrix {
    let entry = |row: &[f64], j: usize| row.iter().zip(q).map(|(x, of)| x * of[j]).sum();
    p.iter().map(|row| (0..q.len()).map(|j| entry(row, j)).collect()).collect()
}

/// By elimination with the largest pivots; not finite where there is none.
fn inverse(mut m: Matrix) -> Matrix {
    let n = m.len();
    let mut found = identity(n);
    for i in 0..n {
        let pivot = (i..n).max_by(|p, q| m[*p][i].abs().total_cmp(&m[*q][i].abs())).unwrap_or(i);
        m.swap(i, pivot);
        found.swap(i, pivot);
        let by = m[i][i];
        m[i].iter_mut().chain(&mut found[i]).for_each(|x| *x /= by);
        let (row, same) = (m[i].clone(), found[i].clone());
        for j in (0..n).filter(|j| *j != i) {
            let times = m[j][i];
            m[j].iter_mut().zip(&row).for_each(|(x, y)| *x -= times * y);
            found[j].iter_mut().zip(&same).for_each(|(x, y)| *x -= times * y);
        }
    }
    found
}

fn dot(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).map(|(x, y)| x * y).sum()
}

/// A system that moves, from rest on: there its input is 0 and its output, like k and y of the step experiment, 1.
#[derive(Debug, Clone)]
pub struct Motion {
    system: Linear,
    rule: Rule,
    ticked: (Time, Linear),
    x: Vec<f64>,
    u: f64,
}

impl Motion {
    /// A system at rest.
    pub fn new(system: Linear, rule: Rule) -> Self {
        Self { x: vec![0.0; system.a.len()], ticked: (0, system.ticked(0, rule)), system, rule, u: 0.0 }
    }

    /// Time between two of its own steps; 0 where it has none.
    pub fn step_ns(&self) -> Time {
        self.system.step_ns
    }

    /// Lets time pass under the last input.
    pub fn pass(&mut self, dt: Time) {
        if self.ticked.0 != dt {
            self.ticked = (dt, self.system.ticked(dt, self.rule));
        }
        let Linear { a, b, .. } = &self.ticked.1;
        let moved = |(row, b): (&Vec<f64>, &f64)| b * self.u + dot(row, &self.x);
        self.x = a.iter().zip(b).map(moved).collect();
    }

    /// The output under the input `u`, which holds from now on.
    pub fn answer(&mut self, u: f64) -> f64 {
        self.u = u;
        let Linear { c, d, .. } = &self.ticked.1;
        1.0 + d * u + dot(c, &self.x)
    }

    /// y under the command `k`, which holds from now on.
    pub fn obey(&mut self, k: f64) -> f64 {
        match self.system.is_static() {
            true => k,
            false => self.answer(k - 1.0),
        }
    }
}
