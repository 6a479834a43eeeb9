"""problems: test problems of several objectives, all to be made small, and the hypervolume that a set of points covers.

ZDT1 to ZDT3: E. Zitzler, K. Deb and L. Thiele, "Comparison of multiobjective evolutionary algorithms: empirical results",
Evolutionary Computation 8 (2000), with 30 variables. DTLZ2: K. Deb, L. Thiele, M. Laumanns and E. Zitzler, "Scalable
multi-objective optimization test problems", CEC 2002, with three objectives and 12 variables.
"""
import math


def zdt1(x):
    g = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    return x[0], g * (1 - math.sqrt(x[0] / g))


def zdt2(x):
    g = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    return x[0], g * (1 - (x[0] / g) ** 2)


def zdt3(x):
    g = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    return x[0], g * (1 - math.sqrt(x[0] / g) - x[0] / g * math.sin(10 * math.pi * x[0]))


def dtlz2(x):
    g = 1 + sum((v - 0.5) ** 2 for v in x[2:])
    a, b = x[0] * math.pi / 2, x[1] * math.pi / 2
    return g * math.cos(a) * math.cos(b), g * math.cos(a) * math.sin(b), g * math.sin(a)


# name: (function, variables, the corner up to which volume counts): 1.1 in each objective, which is the usual one where
# objectives on the front are at most 1. 25,000 points, 100 in a generation, are those of the paper on NSGA-II: K. Deb, A. Pratap,
# S. Agarwal and T. Meyarivan, IEEE Transactions on Evolutionary Computation 6 (2002).
CORNER = 1.1
PROBLEMS = {
    "zdt1": (zdt1, 30, (CORNER, CORNER)),
    "zdt2": (zdt2, 30, (CORNER, CORNER)),
    "zdt3": (zdt3, 30, (CORNER, CORNER)),
    "dtlz2": (dtlz2, 12, (CORNER, CORNER, CORNER)),
}
POINTS, POPULATION = 25000, 100


def whole_area(front, steps=200_000):
    """What a front of two objectives dominates up to the corner; `front` gives the second one of the first, from 0 to 1."""
    covered, lowest = 0.0, CORNER
    for i in range(steps):
        lowest = min(lowest, front((i + 0.5) / steps))
        covered += (CORNER - lowest) / steps
    return covered + (CORNER - 1) * (CORNER - lowest)


# What the fronts themselves cover: no set of points covers more. That of DTLZ2 is an eighth of a sphere.
EXACT = {
    "zdt1": whole_area(lambda x: zdt1((x, 0))[1]),
    "zdt2": whole_area(lambda x: zdt2((x, 0))[1]),
    "zdt3": whole_area(lambda x: zdt3((x, 0))[1]),
    "dtlz2": CORNER ** 3 - math.pi / 6,
}


def area(points, corner):
    """What points of two objectives dominate, up to a corner."""
    covered, lowest = 0.0, corner[1]
    for x, y in sorted(points):
        if x < corner[0] and y < lowest:
            covered += (corner[0] - x) * (lowest - y)
            lowest = y
    return covered


def hypervolume(points, corner):
    """The same of two or three objectives: slices between the values of the third one."""
    if len(corner) == 2:
        return area(points, corner)
    points = sorted((p for p in points if all(v < c for v, c in zip(p, corner))), key=lambda p: p[2])
    covered, front = 0.0, []
    for i, point in enumerate(points):
        if not any(x <= point[0] and y <= point[1] for x, y in front):
            front = [q for q in front if q[0] < point[0] or q[1] < point[1]] + [point[:2]]
        above = points[i + 1][2] if i + 1 < len(points) else corner[2]
        if above > point[2]:
            covered += (above - point[2]) * area(front, corner)
    return covered
