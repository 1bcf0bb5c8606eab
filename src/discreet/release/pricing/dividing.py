"""Divide what one release may spend: from wishes to parts, and to the largest total that fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from discreet.errors import InvalidParameter, Refused
from discreet.exact import up
from discreet.privacy import epsilon
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.query.planning import PricedQuery, joint_event
from discreet.query.planning.targets import errors_of
from discreet.release.places import located, place_of
from discreet.release.plan import Allowance, ReleasePlan
from discreet.release.pricing.fitting import fits, largest, near_rho
from discreet.release.pricing.quotes import Quote
from discreet.release.pricing.splitting import SplitPart, amounts, largest_amount, weights
from discreet.release.pricing.too_dear import too_dear

__all__ = ["divide"]

_STEPS = 20  # Of a bisection: a total is found to a millionth of itself, as amounts are written.
_ROUGHLY = 6  # The same, where only the size of it matters.
_LITTLE = Fraction(999_999, 1_000_000)
_ALL = Fraction(1)


def divide(plan: ReleasePlan, quotes: Sequence[Quote]) -> tuple[PricedQuery, ...]:
    """Price all tables of a plan within what one release may spend, or refuse and say what would fit."""
    division = _Division(plan, tuple(quotes), *_wishes(plan, quotes))
    division.check_shares()
    if plan.allowance.split == "accuracy" and division.free:
        division = division.weighted()
    return division.priced_or_refused()


@final
@dataclass(frozen=True, slots=True)
class _Division:
    """Tables with an epsilon of their own are apart; the others have a part of what is split."""

    plan: ReleasePlan
    quotes: tuple[Quote, ...]
    parts: Mapping[int, SplitPart]
    apart: Mapping[int, PricedQuery]

    @property
    def free(self) -> list[int]:
        """The tables that take what the split gives them."""
        return [index for index, part in self.parts.items() if part.weight]

    @property
    def least(self) -> Fraction:
        """The total that holds everything but the free tables."""
        shared = sum(part.share for part in self.parts.values())
        fixed = sum((part.fixed for part in self.parts.values()), Fraction(0))
        return fixed / (1 - shared) if shared < 1 else Fraction(0)

    @property
    def grows(self) -> bool:
        """Whether a larger total would be of use to anybody."""
        return any(part.share or part.weight for part in self.parts.values())

    def check_shares(self) -> None:
        """Shares leave something for whoever has none."""
        shared = sum(part.share for part in self.parts.values())
        others = [self.quotes[index] for index, part in self.parts.items() if not part.share]
        if shared > 1 or (shared == 1 and (others or self.apart)):
            raise self._at(
                max(self.parts, key=lambda index: self.parts[index].share),
                InvalidParameter(
                    f"all shares together are {shared}, and they are parts of what one release may spend: "
                    + ("they leave nothing for the other tables; " if shared == 1 else "")
                    + "make them smaller"
                ),
            )

    def weighted(self) -> _Division:
        """Give free tables the weights that make the worst relative error smallest."""
        each = self.amounts_at(self.total(_ROUGHLY) or self._refuse())
        constants = {index: self.quotes[index].constant(each[index]) for index in self.free}
        for index, constant in constants.items():
            if constant is None:
                raise self._at(index, _nothing_expected(self.quotes[index], each[index]))
        found = dict(zip(constants, weights([value for value in constants.values() if value]), strict=True))
        parts = {index: replace(part, weight=found.get(index, part.weight)) for index, part in self.parts.items()}
        return replace(self, parts=parts)

    def priced_or_refused(self) -> tuple[PricedQuery, ...]:
        return self.priced_at(self.total() or self._refuse())

    def total(self, steps: int = _STEPS) -> Fraction | None:
        """Return the largest total that fits; None if what is fixed does not."""
        allowance = self.plan.allowance
        exact = allowance.rho if allowance.rho is not None else allowance.epsilon if allowance.delta is None else None
        if exact is not None:
            return exact if self._divided(exact) is not None else None
        if not self.grows:
            return self.least or _ALL if self._fits(self.least) and self._prints(self.least) else None
        rest = largest(lambda rest: self._fits(self.least + rest), near_rho(allowance), steps=steps)
        if rest is None or steps < _STEPS:
            return None if rest is None else self.least + rest
        return self._surely(rest)

    def amounts_at(self, total: Fraction) -> dict[int, Fraction]:
        divided = self._divided(total)
        assert divided is not None
        return divided

    def priced_at(self, total: Fraction) -> tuple[PricedQuery, ...]:
        """Price every table at a total."""
        each = self.amounts_at(total)
        return tuple(
            self.apart[index] if index in self.apart else self._priced(index, each[index])
            for index in range(len(self.quotes))
        )

    def _priced(self, index: int, amount: Fraction) -> PricedQuery:
        try:
            return self.quotes[index].at(amount)
        except InvalidParameter as error:
            told = InvalidParameter(f"what is left for {self.quotes[index].table.name!r} does not do: {error}")
            raise located(self.plan, ("release",), told) from None

    def _divided(self, total: Fraction) -> dict[int, Fraction] | None:
        found = amounts(list(self.parts.values()), total)
        if found is None:
            return None
        return {
            index: min(amount, largest_amount(gaussian=self.quotes[index].gaussian))
            for index, amount in zip(self.parts, found, strict=True)
        }

    def _event(self, total: Fraction) -> Event:
        return joint_event(priced.event for priced in self.priced_at(total))

    def _fits(self, total: Fraction) -> bool:
        return self._divided(total) is not None and fits(self._event(total), self.plan.allowance)

    def _surely(self, rest: Fraction) -> Fraction:
        """Take a little off until the epsilon that will be printed is within the allowance too."""
        while not self._prints(self.least + rest):
            rest *= _LITTLE
        return self.least + rest

    def _prints(self, total: Fraction) -> bool:
        allowance = self.plan.allowance
        assert allowance.epsilon is not None
        assert allowance.delta is not None
        told = epsilon(self._event(total), allowance.delta, relation=Relation.ADD_REMOVE)
        return told <= up(allowance.epsilon)

    def _refuse(self) -> Fraction:
        fixed = {index: self.quotes[index].at(part.fixed) for index, part in self.parts.items() if part.fixed}
        named = {index: (self.quotes[index], priced) for index, priced in (fixed | dict(self.apart)).items()}
        raise too_dear(self.plan, [named[index] for index in sorted(named)])

    def _at(self, index: int, error: InvalidParameter | Refused) -> InvalidParameter | Refused:
        table = self.quotes[index].table
        return located(self.plan, place_of(self.plan, table.name, "share", "expected"), error)


def _wishes(plan: ReleasePlan, quotes: Sequence[Quote]) -> tuple[dict[int, SplitPart], dict[int, PricedQuery]]:
    """Read what each table wishes: a part of what is split, or an epsilon of its own."""
    parts: dict[int, SplitPart] = {}
    apart: dict[int, PricedQuery] = {}
    for index, quote in enumerate(quotes):
        place = place_of(plan, quote.table.name, "error", "relative_error", "epsilon", "rho", "share")
        try:
            wish = _wish(plan.allowance, quote)
        except (InvalidParameter, Refused) as error:
            raise located(plan, place, error) from None
        if isinstance(wish, SplitPart):
            parts[index] = wish
        else:
            apart[index] = wish
    return parts, apart


def _wish(allowance: Allowance, quote: Quote) -> SplitPart | PricedQuery:
    wish = quote.table.wish
    if wish.error is not None or wish.relative_error is not None:
        reached = quote.reaching(wish.error or wish.relative_error or _ALL, relative=wish.error is None)
        return SplitPart(fixed=quote.amount_of(reached))
    if wish.share is not None:
        quote.at(wish.share)  # What cannot be answered at all is refused here, where its place is known.
        return SplitPart(share=wish.share)
    if wish.rho is not None:
        return _own_rho(allowance, quote, wish.rho)
    if wish.epsilon is not None:
        return _own_epsilon(allowance, quote, wish.epsilon)
    quote.at(_ALL)
    return SplitPart(weight=_ALL)


def _own_rho(allowance: Allowance, quote: Quote, rho: Fraction) -> SplitPart:
    if allowance.rho is None and allowance.delta is None:
        raise InvalidParameter(
            "this release is pure, so tables spend epsilon: say epsilon here, or give [release] a delta"
        )
    return SplitPart(fixed=quote.amount_of(quote.at(rho)))


def _own_epsilon(allowance: Allowance, quote: Quote, epsilon: Fraction) -> SplitPart | PricedQuery:
    if allowance.rho is not None:
        raise InvalidParameter("this release spends rho: say rho here too, rather than epsilon")
    if allowance.delta is None:
        return SplitPart(fixed=quote.amount_of(quote.at(epsilon)))
    return quote.for_epsilon(epsilon)


def _nothing_expected(quote: Quote, amount: Fraction) -> InvalidParameter:
    columns = ", ".join(errors_of(quote.at(amount).draft))
    name = quote.table.name
    if not columns:
        return InvalidParameter(
            f"no column of {name!r} has a ± that follows from public facts alone, so it cannot be weighed against "
            "other tables: give it a share, or a price"
        )
    return InvalidParameter(
        f"how much {name!r} needs follows from what you expect of it, and nothing is declared: say expected = "
        f'{{ "*" = rows of a typical group }}, or the expected value of a column ({columns}); or give it an error, a '
        'share or a price; or write split = "even" in [release]'
    )
