/** The filter of the fleet: text, with completion of its keys and values. */

import type { JSX } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";

import type { FilterLanguage } from "../api/types";
import { Icon } from "../components/icon";
import { useLive } from "../live/resource";
import { offerFor, type Offer } from "./offers";
import { findTerm, settle } from "./settle";

const SHOWN = 12;

interface FilterProps {
    value: string;
    /** Called with the text, and with what is to be asked for while its last term is typed. */
    change: (value: string, asked: string) => void;
    error: string | null;
    autofocus: boolean;
}

/** Shows the field, what can follow, and what is wrong. */
export function FilterField({ value, change, error, autofocus }: FilterProps): JSX.Element {
    const language = useLive<FilterLanguage>("/ingot/v1/fleet/filter", () => false);
    const field = useRef<HTMLInputElement>(null);
    const [cursor, setCursor] = useState(value.length);
    const [isOpen, setOpen] = useState(false);
    const [chosen, setChosen] = useState(-1);
    const id = useId();
    const [begin, end] = findTerm(value, cursor);
    const offers = useMemo(
        () => offerFor(value.slice(begin, cursor), language.data.value).slice(0, SHOWN),
        [value, begin, cursor, language.data.value],
    );
    useEffect(() => {
        if (autofocus) field.current?.focus();
    }, [autofocus]);
    const look = (): void => setCursor(field.current?.selectionStart ?? value.length);
    const type = (text: string): void => {
        setChosen(-1);
        setOpen(true);
        const at = field.current?.selectionStart ?? text.length;
        setCursor(at);
        change(text, settle(text, at, language.data.value));
    };
    const take = (offer: Offer): void => {
        const after = value.slice(end);
        const blank = offer.isKey || after.startsWith(" ") ? "" : " ";
        const at = begin + offer.term.length + blank.length;
        const next = value.slice(0, begin) + offer.term + blank + after;
        change(next, settle(next, at, language.data.value));
        setChosen(-1);
        setOpen(offer.isKey);
        setCursor(at);
        requestAnimationFrame(() => field.current?.setSelectionRange(at, at));
        field.current?.focus();
    };
    const leave = (): void => {
        setOpen(false);
        change(value, value.trim());
    };
    const isShown = isOpen && offers.length > 0;
    const steer = (event: KeyboardEvent): void => {
        const offer = offers[chosen];
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            setOpen(true);
            const by = event.key === "ArrowDown" ? 1 : -1;
            setChosen(offers.length ? (chosen + by + offers.length + (chosen < 0 && by < 0 ? 1 : 0)) % offers.length : -1);
        } else if (event.key === "Escape") {
            if (!isShown) {
                field.current?.blur();
                return;
            }
            setOpen(false);
            setChosen(-1);
        } else if (event.key === "Enter" && isShown && offer) take(offer);
        else if (event.key === "Enter") {
            setOpen(false);
            change(value, value.trim());
            document.querySelector<HTMLElement>("[role=grid]")?.focus();
        } else return;
        event.preventDefault();
    };
    return (
        <div class="filter" onFocusOut={(event) => event.currentTarget.contains(event.relatedTarget as Node | null) || leave()}>
            <div class="filter-box">
                <Icon name="search" />
                <input
                    ref={field}
                    class="input filter-input mono"
                    type="text"
                    role="combobox"
                    data-search
                    aria-label="Filter of the fleet"
                    aria-expanded={isShown}
                    aria-controls={`${id}-list`}
                    aria-autocomplete="list"
                    aria-activedescendant={isShown && chosen >= 0 ? `${id}-${chosen}` : undefined}
                    aria-invalid={error !== null}
                    aria-describedby={error !== null ? `${id}-error` : undefined}
                    autocomplete="off"
                    autocapitalize="none"
                    spellcheck={false}
                    placeholder="rack-3  state:available,active  -class:gpu  since:>1h"
                    value={value}
                    onInput={(event) => type(event.currentTarget.value)}
                    onKeyDown={steer}
                    onKeyUp={look}
                    onClick={() => {
                        look();
                        setOpen(true);
                    }}
                />
                {value && (
                    <button type="button" class="button-plain filter-clear" aria-label="Clear the filter" onClick={() => type("")}>
                        <Icon name="cross" />
                    </button>
                )}
            </div>
            <ul role="listbox" id={`${id}-list`} class="filter-list" aria-label="Completions" hidden={!isShown}>
                {isShown &&
                    offers.map((offer, at) => (
                        <li
                            key={offer.term}
                            role="option"
                            id={`${id}-${at}`}
                            aria-selected={at === chosen}
                            onPointerDown={(event) => {
                                event.preventDefault();
                                take(offer);
                            }}
                        >
                            <span class="mono">{offer.term}</span> <span class="muted">{offer.about}</span>
                        </li>
                    ))}
            </ul>
            {error !== null && (
                <p id={`${id}-error`} class="field-wrong" role="status">
                    {error}
                </p>
            )}
        </div>
    );
}
